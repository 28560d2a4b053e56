// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * io FILE MODE...: known reads and writes of FILE, each printed with the times of
 * the program's own clock around it.
 *
 *	file DEV INO		the file's ids, with the kernel's encoding of the device
 *	extent OFFSET SECTOR BYTES	its place on the disk
 *	op WORD OFFSET BYTES BEGIN END	one operation
 *	counted MODE READ_BYTES WRITE_BYTES MAJOR	the kernel's counters of the process
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define SIZE   (4 << 20)
#define EXTENT 128

static unsigned char *buffer;
static const char *path;

static void die(const char *what)
{
	fprintf(stderr, "io: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static int open_file(int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd < 0)
		die(path);
	return fd;
}

static void print_op(const char *word, long long offset, long long bytes, unsigned long long begin)
{
	printf("op %s %lld %lld %llu %llu\n", word, offset, bytes, begin, now());
}

static void print_file(int fd)
{
	struct fiemap *map = calloc(1, sizeof(*map) + EXTENT * sizeof(struct fiemap_extent));
	struct stat st;

	if (!map || fstat(fd, &st))
		die("stat");
	printf("file %llu %llu\n", (unsigned long long)major(st.st_dev) << 20 | minor(st.st_dev),
	       (unsigned long long)st.st_ino);
	map->fm_length = FIEMAP_MAX_OFFSET;
	map->fm_extent_count = EXTENT;
	if (ioctl(fd, FS_IOC_FIEMAP, map))
		die("fiemap");
	for (unsigned int i = 0; i < map->fm_mapped_extents; i++)
		printf("extent %llu %llu %llu\n", map->fm_extents[i].fe_logical, map->fm_extents[i].fe_physical / 512,
		       map->fm_extents[i].fe_length);
	free(map);
}

/* Written completely and evicted from the page cache. */
static void prepare(void)
{
	int fd = open_file(O_RDWR | O_CREAT | O_TRUNC);

	if (write(fd, buffer, SIZE) != SIZE || fsync(fd))
		die("prepare");
	if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		die("fadvise");
	print_file(fd);
	close(fd);
}

static void evict(int fd)
{
	if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		die("fadvise");
}

static const struct {
	long offset, bytes;
} list[] = {
	{ 0, 4096 },	      { 8192, 4096 },  { 65536, 65536 },  { 1 << 20, 131072 },
	{ 3 << 20, 1 << 20 }, { 4096, 12288 }, { 2 << 20, 8192 }, { (4 << 20) - 4096, 4096 },
};

static void direct(void)
{
	int fd = open_file(O_RDWR | O_DIRECT);
	unsigned long long t;

	for (int pass = 0; pass < 2; pass++)
		for (unsigned int i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
			t = now();
			if ((pass ? pread(fd, buffer, list[i].bytes, list[i].offset) :
				    pwrite(fd, buffer, list[i].bytes, list[i].offset)) != list[i].bytes)
				die("direct");
			print_op(pass ? "direct-read" : "direct-write", list[i].offset, list[i].bytes, t);
		}
	close(fd);
}

/* O_DIRECT from memory that is another file's page: the write must be attributed to this file. */
static void borrowed(void)
{
	char other[4096];
	unsigned long long t;
	int fd = open_file(O_RDWR | O_DIRECT), fd2;
	void *page;

	snprintf(other, sizeof(other), "%s.other", path);
	fd2 = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd2 < 0 || write(fd2, buffer, 4096) != 4096)
		die(other);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd2, 0);
	if (page == MAP_FAILED)
		die("mmap");
	fsync(fd2);
	t = now();
	if (pwrite(fd, page, 4096, 16384) != 4096)
		die("borrowed");
	print_op("borrowed", 16384, 4096, t);
	unlink(other);
	close(fd2);
	close(fd);
}

static void buffered(void)
{
	int fd = open_file(O_RDWR);
	unsigned long long t = now();

	if (pwrite(fd, buffer, 1 << 20, 1 << 20) != 1 << 20)
		die("write");
	print_op("write", 1 << 20, 1 << 20, t);
	t = now();
	if (fsync(fd))
		die("fsync");
	print_op("fsync", 1 << 20, 1 << 20, t);
	close(fd);
}

static void cold(void)
{
	int fd = open_file(O_RDONLY);
	unsigned long long t;

	evict(fd);
	t = now();
	for (long at = 0; at < SIZE; at += 65536)
		if (pread(fd, buffer, 65536, at) != 65536)
			die("cold");
	print_op("cold-read", 0, SIZE, t);
	close(fd);
}

static void faults(void)
{
	int fd = open_file(O_RDONLY);
	volatile unsigned char *p;
	unsigned long long t;

	evict(fd);
	p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || madvise((void *)p, SIZE, MADV_RANDOM))
		die("mmap");
	for (long at = 0; at < SIZE; at += SIZE / 32) {
		t = now();
		(void)p[at + 5];
		print_op("fault", at, 4096, t);
		printf("address %llu\n", (unsigned long long)(p + at + 5));
	}
	munmap((void *)p, SIZE);
	close(fd);
}

static void count(unsigned long long *out)
{
	char line[128];
	struct rusage u;
	FILE *f = fopen("/proc/self/io", "r");

	out[0] = out[1] = 0;
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "read_bytes: %llu", &out[0]);
		sscanf(line, "write_bytes: %llu", &out[1]);
	}
	if (f)
		fclose(f);
	getrusage(RUSAGE_SELF, &u);
	out[2] = u.ru_majflt;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = { { "direct", direct },
		      { "borrowed", borrowed },
		      { "buffered", buffered },
		      { "cold", cold },
		      { "faults", faults } };
	unsigned long long before[3], after[3];

	if (argc < 3 || posix_memalign((void **)&buffer, 4096, SIZE))
		return 2;
	memset(buffer, 0x5a, SIZE);
	path = argv[1];
	prepare();
	getchar();
	for (int i = 2; i < argc; i++)
		for (unsigned int m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
			if (strcmp(argv[i], modes[m].name))
				continue;
			count(before);
			modes[m].run();
			count(after);
			printf("counted %s %llu %llu %llu\n", argv[i], after[0] - before[0], after[1] - before[1],
			       after[2] - before[2]);
		}
	unlink(path);
	return 0;
}
