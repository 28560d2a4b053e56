// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ranks of environments: those of launchers, hostile ones, and ones that are read in parts. */
#include "process/rank.h"
#include "test.h"

#include <string.h>

#define ENTRY_OF_47 "RANK=000000000000000000000000000000000000000003"

/* An environment whose entries end with NUL */
static const struct {
	const char *bytes;
	size_t n;
	struct process_rank rank;
} environments[] = {
#define ENVIRONMENT(text, ...)      \
	{                           \
		text, sizeof(text), \
		{                   \
			__VA_ARGS__ \
		}                   \
	}
	ENVIRONMENT("", 0, 0, -1),
	ENVIRONMENT("PATH=/bin\0RANK=3\0WORLD_SIZE=8\0LOCAL_RANK=1\0HOME=/", 3, 8, 1),
	ENVIRONMENT("WORLD_SIZE=2\0RANK=0", 0, 2, -1),
	ENVIRONMENT("OMPI_COMM_WORLD_RANK=1\0OMPI_COMM_WORLD_SIZE=4\0OMPI_COMM_WORLD_LOCAL_RANK=0", 1, 4, 0),
	ENVIRONMENT("PMI_RANK=5\0PMI_SIZE=6", 5, 6, -1),
	ENVIRONMENT("SLURM_PROCID=2\0SLURM_NTASKS=3\0SLURM_LOCALID=2", 2, 3, 2),
	/* torchrun in a job of Slurm with one task */
	ENVIRONMENT("SLURM_PROCID=0\0SLURM_NTASKS=1\0RANK=1\0WORLD_SIZE=2", 1, 2, -1),
	/* of two entries the first counts */
	ENVIRONMENT("RANK=1\0RANK=0\0WORLD_SIZE=2", 1, 2, -1),
	/* a rank without a size, one that is not below it, and texts that are not numbers */
	ENVIRONMENT("RANK=3", 0, 0, -1),
	ENVIRONMENT("RANK=2\0WORLD_SIZE=2", 0, 0, -1),
	ENVIRONMENT("RANK=\0WORLD_SIZE=2", 0, 0, -1),
	ENVIRONMENT("RANK=-1\0WORLD_SIZE=2", 0, 0, -1),
	ENVIRONMENT("RANK=1x\0WORLD_SIZE=2", 0, 0, -1),
	ENVIRONMENT("RANK= 1\0WORLD_SIZE=2", 0, 0, -1),
	ENVIRONMENT("RANK=4294967296\0WORLD_SIZE=4294967298", 0, 0, -1),
	ENVIRONMENT("RANK=0\0WORLD_SIZE=99999999", 0, 0, -1),
	ENVIRONMENT("RANK=0\0WORLD_SIZE=16777215", 0, 16777215, -1),
	ENVIRONMENT("RANK=1\0WORLD_SIZE=2\0LOCAL_RANK=all", 1, 2, -1),
	ENVIRONMENT("RANK\0WORLD_SIZE", 0, 0, -1),
	ENVIRONMENT("=\0\0RANK==1\0WORLD_SIZE=2", 0, 0, -1),
	ENVIRONMENT(ENTRY_OF_47 "\0WORLD_SIZE=4", 0, 0, -1),
	ENVIRONMENT(ENTRY_OF_47 "0\0RANK=1\0WORLD_SIZE=4", 1, 4, -1),
};

static bool equal(struct process_rank a, struct process_rank b)
{
	return a.rank == b.rank && a.size == b.size && a.local == b.local;
}

TEST(reads_ranks)
{
	for (size_t i = 0; i < sizeof(environments) / sizeof(*environments); i++) {
		struct rank_parser p = { 0 };

		rank_parser__add(&p, environments[i].bytes, environments[i].n);
		CHECK(equal(rank_parser__result(&p), environments[i].rank));
	}
}

TEST(reads_ranks_in_parts)
{
	for (size_t i = 0; i < sizeof(environments) / sizeof(*environments); i++)
		for (size_t part = 1; part < environments[i].n; part++) {
			struct rank_parser p = { 0 };

			for (size_t at = 0; at < environments[i].n; at += part)
				rank_parser__add(&p, environments[i].bytes + at,
						 at + part < environments[i].n ? part : environments[i].n - at);
			CHECK(equal(rank_parser__result(&p), environments[i].rank));
		}
}

/* The last entry may have been cut */
TEST(reads_an_environment_without_an_end)
{
	struct rank_parser p = { 0 };

	rank_parser__add(&p, "PMI_SIZE=3\0PMI_RANK=1\0RANK=0\0WORLD_SIZE=16", 41);
	CHECK(equal(rank_parser__result(&p), (struct process_rank){ 1, 3, -1 }));
}

TEST_MAIN()
