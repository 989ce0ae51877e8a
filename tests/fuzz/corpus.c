/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over files, without a fuzzer: the corpus as an ordinary test.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int run_file(const char *path)
{
	static uint8_t data[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t n;
	uint8_t *exact;

	if (!f)
		return 0;
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	exact = malloc(n + !n); /* of the very length, so that reads beyond it are seen */
	for (size_t i = 0; i < n; i++)
		exact[i] = data[i];
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	return 1;
}

int main(int argc, char **argv)
{
	int files = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		struct dirent *d;
		char path[4096];

		while (dir && (d = readdir(dir))) {
			snprintf(path, sizeof(path), "%s/%s", argv[i], d->d_name);
			if (d->d_name[0] != '.')
				files += run_file(path);
		}
		if (dir)
			closedir(dir);
		else
			files += run_file(argv[i]);
	}
	printf("%d test(s) run\n", files);
	return files ? 0 : 1;
}
