// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes the sample traces that tests/golden and tests/fuzz/seeds/trace hold.
 * Golden files are never made again for a format that was released: new ones
 * are added, so that every old file stays readable.
 *
 *	make_traces NAME RECORDS RECORDS-A-CHUNK INDEX
 */
#include "../unit/trace_support.h"

int main(int argc, char **argv)
{
	int fd = argc == 5 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;

	return fd < 0 || support_write_fd(fd, atoi(argv[2]), atoi(argv[3]), atoi(argv[4])) ? 1 : 0;
}
