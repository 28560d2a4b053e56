// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The other ends of the programs: clients of a service and a slow service.
 *
 *   peer load PORT PATH CONNECTIONS THINK_MS    each connection asks for PATH, reads the answer, thinks, asks again
 *   peer slow PORT DELAY_MS                     answers each request after DELAY_MS, a thread a connection
 *   peer slow PATH DELAY_MS                     the same at a UNIX socket; a request there is a line
 *   peer full PORT                              listens with a backlog of 0 that is full, and never accepts
 *   peer drain BYTES MS                         reads this many bytes of its stdin, pauses, reads on
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char *path;
static int port, delay_ms;

static void sleep_ms(int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	if (ms > 0)
		nanosleep(&t, NULL);
}

static struct sockaddr_in address(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

/* Reads until the end of a header, and the body if its length is given; returns false at the end of the connection. */
static int read_message(int fd, char *buffer, size_t size)
{
	size_t have = 0;
	char *end, *length;

	for (;;) {
		ssize_t n = read(fd, buffer + have, size - 1 - have);

		if (n <= 0)
			return 0;
		have += n;
		buffer[have] = 0;
		end = strstr(buffer, "\r\n\r\n");
		if (!end)
			continue;
		length = strcasestr(buffer, "content-length:");
		if (!length || length > end || have >= (size_t)(end + 4 - buffer) + strtoul(length + 15, NULL, 10))
			return 1;
	}
}

static void *client(void *unused)
{
	struct sockaddr_in to = address();
	char request[512], answer[65536];
	int length, one = 1;

	(void)unused;
	length = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (!connect(fd, (struct sockaddr *)&to, sizeof(to)))
			while (write(fd, request, length) == length && read_message(fd, answer, sizeof(answer)))
				sleep_ms(delay_ms);
		close(fd);
		sleep_ms(20);
	}
	return NULL;
}

static void *answer_slowly(void *argument)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n";
	int fd = (int)(long)argument;
	char request[65536];

	while (read_message(fd, request, sizeof(request))) {
		sleep_ms(delay_ms);
		if (write(fd, ok, sizeof(ok) - 1) < 0)
			break;
	}
	close(fd);
	return NULL;
}

/* Answers each read from a UNIX socket, whose clients wait for an answer before they ask again. */
static void *answer_lines(void *argument)
{
	int fd = (int)(long)argument;
	char request[4096];

	while (read(fd, request, sizeof(request)) > 0) {
		sleep_ms(delay_ms);
		if (write(fd, "ok\n", 3) < 0)
			break;
	}
	close(fd);
	return NULL;
}

static int listen_at_path(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", name);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 64)) {
		perror("peer: listen");
		exit(1);
	}
	return fd;
}

static int listen_at(int backlog)
{
	struct sockaddr_in at = address();
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, backlog)) {
		perror("peer: listen");
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	port = argc > 2 ? atoi(argv[2]) : 0;
	if (argc == 6 && !strcmp(argv[1], "load")) {
		path = argv[3];
		delay_ms = atoi(argv[5]);
		for (int i = 0; i < atoi(argv[4]); i++)
			pthread_create(&thread, NULL, client, NULL);
		pause();
	} else if (argc == 4 && !strcmp(argv[1], "slow")) {
		int is_path = argv[2][0] == '/';
		int fd = is_path ? listen_at_path(argv[2]) : listen_at(64);

		delay_ms = atoi(argv[3]);
		for (;;) {
			long connection = accept(fd, NULL, NULL);

			if (connection >= 0 &&
			    !pthread_create(&thread, NULL, is_path ? answer_lines : answer_slowly, (void *)connection))
				pthread_detach(thread);
		}
	} else if (argc == 3 && !strcmp(argv[1], "full")) {
		struct sockaddr_in to = address();

		int fd = listen_at(0);
		for (int i = 0; i < 2; i++) {
			fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

			(void)!connect(fd, (struct sockaddr *)&to, sizeof(to));
		}
		pause();
	}
	if (argc == 4 && !strcmp(argv[1], "drain")) {
		char buffer[4096];
		int chunk = atoi(argv[2]) < 4096 ? atoi(argv[2]) : 4096;

		while (read(0, buffer, chunk) > 0)
			sleep_ms(atoi(argv[3]));
		return 0;
	}
	fprintf(stderr,
		"usage: peer load PORT PATH CONNECTIONS THINK_MS | slow PORT|PATH DELAY_MS | full PORT | drain BYTES MS\n");
	return 2;
}
