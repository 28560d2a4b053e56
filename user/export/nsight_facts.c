// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Nsight's tables of the machine, the recording, its processes and threads; views of stacks. */
#include "export/nsight.h"

#include <stdio.h>
#include <time.h>

#include "util/array.h"

/* The version of Nsight's schema whose columns these tables have at least */
#define SCHEMA_MAJOR "3"
#define SCHEMA_MINOR "16"
#define SCHEMA_MICRO "1"

static const struct nsight_table thread_names = { "ThreadNames", "nameId! priority globalTid", "nameId,globalTid" };

static const struct nsight_table processes = { "PROCESSES", "globalPid pid name:t", "globalPid,pid,name" };

static const struct nsight_table details = { "ANALYSIS_DETAILS", "globalVid! duration! startTime! stopTime!",
					     "globalVid,duration,startTime,stopTime" };

static const struct nsight_table session = {
	"TARGET_INFO_SESSION_START_TIME",
	"utcEpochNs utcTime:t localTime:t systemClockNs sessionStartCntVctNs",
	"utcEpochNs,utcTime,systemClockNs",
};

static const struct nsight_table system_env = { "TARGET_INFO_SYSTEM_ENV",
						"globalVid devStateName:t! name:t! nameEnum! value:t!",
						"globalVid,devStateName,name,nameEnum,value" };

static const struct nsight_table capture_facts = { "META_DATA_CAPTURE", "name:t! value:t", "name,value" };
static const struct nsight_table export_facts = { "META_DATA_EXPORT", "name:t! value:t", "name,value" };

static const struct nsight_table diagnostics = { "DIAGNOSTIC_EVENT",
						 "timestamp! timestampType! source! severity! text:t! globalPid",
						 "timestamp,timestampType,source,severity,text" };

/*
 * Views, because each sample would have as many rows as its stack has frames. The id of a sample is the number of its
 * row in sonde_sample_cpu, that of a call's stack the one of its innermost frame.
 */
#define CHAINS(first)                                                                                                    \
	"WITH RECURSIVE walk(id, frame, depth) AS (" first " UNION ALL SELECT walk.id, f.caller, depth + 1 FROM walk "   \
	"JOIN sonde_frames AS f ON f.id = walk.frame WHERE f.caller IS NOT NULL) SELECT walk.id, f.symbolId AS symbol, " \
	"f.moduleId AS module, "
#define OF_FRAMES " FROM walk JOIN sonde_frames AS f ON f.id = walk.frame"

static const char sample_chains[] = "CREATE VIEW SAMPLING_CALLCHAINS AS " CHAINS(
	"SELECT rowid, stack, 0 FROM sonde_sample_cpu WHERE stack != 0") "f.isKernel AS kernelMode, 0 AS thumbCode, "
									 "f.name = '' AS unresolved, 0 AS specialEntry, NULL AS originalIP, NULL AS unwindMethod, depth AS "
									 "stackDepth" OF_FRAMES;

static const char call_chains[] = "CREATE VIEW CUDA_CALLCHAINS AS " CHAINS(
	"SELECT DISTINCT callchainId, callchainId, 0 FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE callchainId IS NOT "
	"NULL") "f.name = '' AS unresolved, NULL AS originalIP, depth AS stackDepth" OF_FRAMES;

int nsight__put_thread(struct nsight *n, u32 pid, u32 tid)
{
	const char *name = names__comm(n->s->e->names, pid, tid);

	return name ? NSIGHT_PUT(n, &thread_names, N_NAME(name), N_THREAD(n, pid, tid)) : 0;
}

int nsight__put_process(struct nsight *n, const struct task *t)
{
	return NSIGHT_PUT(n, &processes, N_PROCESS(n, t->id), N_NUMBER(t->pid), N_TEXT(task__name(t)));
}

int nsight__put_diagnostic(struct nsight *n, u64 time, const char *text)
{
	enum { WARNING = 2 };

	return NSIGHT_PUT(n, &diagnostics, N_TIME(time), N_NUMBER(0), N_NUMBER(0), N_NUMBER(WARNING), N_TEXT(text));
}

static int put_session(struct nsight *n)
{
	const struct trace_facts *facts = n->s->e->facts;
	u64 began = trace_facts__realtime(facts, facts->start);
	time_t seconds = (time_t)(began / 1000000000);
	char text[32] = "";
	struct tm tm;
	int err;

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	err = NSIGHT_PUT(n, &session, N_NUMBER(began), N_TEXT(text), N_NUMBER(facts->start));
	return err ? err :
		     NSIGHT_PUT(n, &details, N_PROCESS(n, 0), N_NUMBER(facts->stop - facts->live), N_TIME(facts->live),
				N_TIME(facts->stop));
}

static int put_machine(struct nsight *n)
{
	const struct trace_head *h = n->s->e->facts->head;
	const struct {
		const char *state, *name, *value;
	} facts[] = {
		{ "System", "Hostname", h->hostname },
		{ "System", "KernelVersion", h->kernel },
	};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_LEN(facts); i++)
		err = NSIGHT_PUT(n, &system_env, N_PROCESS(n, 0), N_TEXT(facts[i].state), N_TEXT(facts[i].name),
				 N_NUMBER(0), N_TEXT(facts[i].value));
	return err;
}

static int put_versions(struct nsight *n)
{
	const struct trace_head *h = n->s->e->facts->head;
	const struct {
		const char *name, *value;
	} facts[] = {
		{ "EXPORT_PRODUCT_NAME", "sonde" },
		{ "EXPORT_PRODUCT_VERSION", h->sonde_version },
		{ "EXPORT_SCHEMA_VERSION", SCHEMA_MAJOR "." SCHEMA_MINOR "." SCHEMA_MICRO },
		{ "EXPORT_SCHEMA_VERSION_MAJOR", SCHEMA_MAJOR },
		{ "EXPORT_SCHEMA_VERSION_MINOR", SCHEMA_MINOR },
		{ "EXPORT_SCHEMA_VERSION_MICRO", SCHEMA_MICRO },
	};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_LEN(facts); i++)
		err = NSIGHT_PUT(n, &export_facts, N_TEXT(facts[i].name), N_TEXT(facts[i].value));
	return err ? err : NSIGHT_PUT(n, &capture_facts, N_TEXT("COMMAND"), N_TEXT(h->command));
}

int nsight__put_facts(struct nsight *n)
{
	int err = put_session(n);

	if (!err)
		err = put_machine(n);
	if (!err)
		err = put_versions(n);
	if (!err)
		err = nsight__put_enums(n);
	if (!err && trace__has(n->s->e->trace, "sample_cpu"))
		err = sqlite__execute(n->s, sample_chains);
	if (!err && nsight__has_calls(n))
		err = sqlite__execute(n->s, call_chains);
	return err;
}
