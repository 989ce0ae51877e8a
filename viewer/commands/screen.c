/* SPDX-License-Identifier: Apache-2.0 */
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "../answers/chart.h"
#include "../base/emit_json.h"
#include "../base/machine.h"

static struct termios before;
static volatile sig_atomic_t stopped;

static void note_stop(int number)
{
	stopped = number;
}

static void catch_signals(void (*handler)(int))
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = handler };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}

bool screen_open(void)
{
	struct termios raw;

	if (!machine_moves(stdout) || tcgetattr(STDIN_FILENO, &before))
		return false;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	catch_signals(note_stop);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?25l", stdout);
	fflush(stdout);
	return true;
}

void screen_close(void)
{
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
	catch_signals(SIG_DFL);
}

void screen_show(const char *text, size_t len)
{
	unsigned columns, rows, row = 0;
	const char *end = text + len;

	chart_screen(&columns, &rows);
	fputs("\033[H", stdout);
	while (text < end && ++row < rows) {
		const char *line = memchr(text, '\n', (size_t)(end - text));

		line = line ? line : end;
		fwrite(text, 1, (size_t)(line - text), stdout);
		fputs("\033[K\r\n", stdout);
		text = line + 1;
	}
	fputs("\033[J", stdout);
	fflush(stdout);
}

int screen_key(unsigned milliseconds)
{
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };
	char key;

	if (stopped)
		return 'q';
	if (poll(&input, 1, (int)milliseconds) <= 0)
		return stopped ? 'q' : 0;
	return read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';
}
