/* SPDX-License-Identifier: Apache-2.0 */
/* attach: takes PyTorch's memory snapshot of a process that was started without gpumemtrace. */
#include <signal.h>

#include "../recording/attach.h"
#include "../base/outfile.h"
#include "../base/shell.h"
#include "../recording/running.h"
#include "../ask/command.h"
#include "import_made.h"

static volatile sig_atomic_t asked_to_stop;

static void on_signal(UNUSED int signal)
{
	asked_to_stop = 1;
}

static bool stopped(void)
{
	return asked_to_stop;
}

/* Ctrl-C ends the recording early; the report is still printed. */
static void listen(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

static int find_process(const char *text, long *id)
{
	char why[ATTACH_WHY], recording[PATH_MAX], word[SHELL_WORD], *end;
	long pid = *id = strtol(text, &end, 10);

	if (end == text || *end || pid < 1 || pid > INT_MAX)
		return say_usage("%s is not a process id", text);
	if (!attach_allowed((pid_t)pid, why))
		return say_usage("process %ld: %s", pid, why);
	if (running_recording(pid, recording))
		return say_usage("process %ld is being recorded already: gpumemtrace report %s",
				 pid, shell_word(recording, word));
	return 0;
}

/* Prints the report of the new recording. Returns an exit code. */
static int show_report(const char *file, struct emit *out)
{
	char *argv[] = { (char *)file, NULL };
	struct options_common common = { 0 };
	void *options = options_new(&command_report);
	int rc = options_parse(&command_report, argv, options, &common);

	if (!rc) {
		memcpy((char *)options + command_report.file, &file, sizeof(file));
		rc = command_perform(&command_report, options, out);
	}
	options_free(&command_report, options, &common);
	return rc;
}

static int show_attached(const struct exchange *x, const char *file, struct emit *out)
{
	struct recording r;
	struct row_attach row = { .file = file, .pid = (uint64_t)x->pid, .history = x->recorded };
	int rc = import_look(&r, file, &row.events);

	if (rc)
		return rc;
	row.notes = import_notes(&r);
	emit_document(out, attach, &row);
	emit_line(out, "Process %d, %s in %s", (int)x->pid, MANY(row.events, "event"), file);
	recording_close(&r);
	return emit_json(out) ? 0 : show_report(file, out);
}

static int attach(struct exchange *x, const char *output, struct emit *out)
{
	char why[ATTACH_WHY];
	int rc;

	listen();
	if (exchange_run(x, stopped, why))
		rc = import_make(x->snapshot, output);
	else
		rc = say_usage("process %d: %s", (int)x->pid, why);
	exchange_end(x);
	return rc ? rc : show_attached(x, output, out);
}

int run_attach(const struct attach_options *o, struct emit *out)
{
	struct exchange x = { .seconds = o->record, .patience = (double)o->wait };
	char own[64];
	const char *output = o->output ? o->output : own;
	long pid = 0;
	int rc = find_process(o->pid, &pid);

	x.pid = (pid_t)pid;
	snprintf(own, sizeof(own), "attach.%ld.gmt", pid);
	if (!rc)
		rc = outfile_check(output);
	if (!rc)
		rc = running_refuse(output);
	return rc ? rc : attach(&x, output, out);
}
