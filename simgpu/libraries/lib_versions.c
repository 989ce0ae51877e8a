/* SPDX-License-Identifier: Apache-2.0
 *
 * The version that a library reports. Frameworks compare it with the version that they were built
 * for, so it is read from the real library, which the process has loaded as the framework's
 * dependency; the function returns a constant and needs no device. Without a real library the
 * table's figure is used. Any thread.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include "lib.h"

enum how { BY_PART, BY_NUMBER, BY_POINTER };

struct library {
	const char *name, *file, *function;
	enum how how;
	int cuda; /* of this major version; 0: of any */
	int version[3];
	bool asked;
};

#define SCALE 10000 /* of BY_NUMBER and BY_POINTER: major = number / SCALE */
#define ROW(name, file, function, how, cuda, ...)                       \
	{                                                               \
		name, file, function, how, cuda, { __VA_ARGS__ }, false \
	}

static struct library libraries[] = {
	ROW("cublas", "libcublasLt.so.13", "cublasLtGetProperty", BY_PART, 13, 13, 1, 0),
	ROW("cublas", "libcublasLt.so.12", "cublasLtGetProperty", BY_PART, 12, 12, 4, 5),
	ROW("cusparse", "libcusparse.so.12", "cusparseGetProperty", BY_PART, 13, 12, 6, 3),
	ROW("cusparse", "libcusparse.so.12", "cusparseGetProperty", BY_PART, 12, 12, 3, 1),
	ROW("cusolver", "libcusolver.so.12", "cusolverGetProperty", BY_PART, 13, 12, 0, 4),
	ROW("cusolver", "libcusolver.so.11", "cusolverGetProperty", BY_PART, 12, 11, 6, 1),
	ROW("cufft", "libcufft.so.12", "cufftGetProperty", BY_PART, 13, 12, 0, 0),
	ROW("cufft", "libcufft.so.11", "cufftGetProperty", BY_PART, 12, 11, 2, 1),
	ROW("curand", "libcurand.so.10", "curandGetProperty", BY_PART, 0, 10, 4, 0),
	ROW("cudnn", "libcudnn.so.9", "cudnnGetVersion", BY_NUMBER, 0, 9, 19, 0),
	ROW("nccl", "libnccl.so.2", "ncclGetVersion", BY_POINTER, 0, 2, 28, 9),
};

#define LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool asking;

static int number_of(const struct library *l, void *function)
{
	int number = 0;

	if (l->how == BY_NUMBER)
		return (int)((size_t(*)(void))function)();
	return ((int (*)(int *))function)(&number) ? 0 : number;
}

static void ask(struct library *l)
{
	void *handle = dlopen(l->file, RTLD_LAZY | RTLD_NOLOAD);
	void *function = handle ? dlsym(handle, l->function) : NULL;
	int number;

	if (!function)
		return;
	if (l->how == BY_PART) {
		for (int i = 0; i < 3; i++)
			((int (*)(int, int *))function)(i, &l->version[i]);
		return;
	}
	number = number_of(l, function);
	if (number < SCALE)
		return;
	l->version[0] = number / SCALE;
	l->version[1] = number % SCALE / 100;
	l->version[2] = number % 100;
}

/* A real library may call this one again through others; then the table's figure is used. */
static void ask_once(struct library *l)
{
	if (asking)
		return;
	pthread_mutex_lock(&lock);
	asking = true;
	if (!l->asked)
		ask(l);
	l->asked = true;
	asking = false;
	pthread_mutex_unlock(&lock);
}

int lib_version(const char *library, int part)
{
	int cuda = sim_cuda_major() >= 13 ? 13 : 12;

	for (struct library *l = libraries; l < libraries + LIBRARIES; l++) {
		if (strcmp(l->name, library) || (l->cuda && l->cuda != cuda))
			continue;
		ask_once(l);
		return l->version[part];
	}
	return 0;
}

int lib_version_number(const char *library, int scale)
{
	return lib_version(library, 0) * scale + lib_version(library, 1) * 100 +
	       lib_version(library, 2);
}
