// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads any bytes as a file with DWARF: the members of structs that families look up in libraries. */
#include <sys/mman.h>
#include <unistd.h>

#include "elf/dwarf.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dwarf_member members[] = { { "first", 4, 0 }, { "second.inner", 8, 0 }, { "absent", 4, 0 } };
	int fd = memfd_create("dwarf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (!dwarf__members(fd, "ncclComm", members, 3))
		fuzz__use(members[0].offset + members[1].offset);
	close(fd);
	return 0;
}
