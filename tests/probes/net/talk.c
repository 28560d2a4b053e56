// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * talk: TCP connections over the loopback device, to a listener in a child process, each
 * printed with the bytes in both directions and the times of its own clock.
 *
 *	server PID
 *	talk FAMILY CLIENT-PORT SERVER-PORT TO-SERVER TO-CLIENT CONNECT-BEGIN CONNECT-END CLOSE
 *	refused PORT
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static char buffer[1 << 20];

static void die(const char *what)
{
	fprintf(stderr, "talk: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static socklen_t local(union address *a, int family, unsigned short port)
{
	memset(a, 0, sizeof(*a));
	a->any.sa_family = family;
	if (family == AF_INET) {
		a->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		a->v4.sin_port = htons(port);
		return sizeof(a->v4);
	}
	a->v6.sin6_addr = in6addr_loopback;
	a->v6.sin6_port = htons(port);
	return sizeof(a->v6);
}

static unsigned short port_of(int fd)
{
	union address a;
	socklen_t len = sizeof(a);

	if (getsockname(fd, &a.any, &len))
		die("getsockname");
	return ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
}

static int listener(int family)
{
	union address a;
	socklen_t len = local(&a, family, 0);
	int fd = socket(family, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, &a.any, len) || listen(fd, 16))
		return -1;
	return fd;
}

static void take(int fd, size_t n)
{
	ssize_t got;

	for (; n; n -= got) {
		got = recv(fd, buffer, n < sizeof(buffer) ? n : sizeof(buffer), 0);
		if (got <= 0)
			die("recv");
	}
}

static void give(int fd, size_t n)
{
	ssize_t sent;

	for (; n; n -= sent) {
		sent = send(fd, buffer, n < sizeof(buffer) ? n : sizeof(buffer), 0);
		if (sent <= 0)
			die("send");
	}
}

/* The first 16 bytes have the number of bytes that follow and the number to send back. */
static void serve(int listening)
{
	unsigned long ask[2];
	int fd;

	for (;;) {
		fd = accept(listening, NULL, NULL);
		if (fd < 0)
			die("accept");
		if (recv(fd, ask, sizeof(ask), MSG_WAITALL) != sizeof(ask))
			die("ask");
		take(fd, ask[0]);
		give(fd, ask[1]);
		/* the client closes first */
		if (recv(fd, buffer, 1, 0))
			die("end");
		close(fd);
	}
}

static void talk(int family, unsigned short port, unsigned long to_server, unsigned long to_client)
{
	unsigned long ask[2] = { to_server, to_client };
	unsigned long long begin, end;
	unsigned short own;
	union address a;
	socklen_t len = local(&a, family, port);
	int fd = socket(family, SOCK_STREAM, 0);

	begin = now();
	if (connect(fd, &a.any, len))
		die("connect");
	end = now();
	own = port_of(fd);
	give(fd, 0);
	if (send(fd, ask, sizeof(ask), 0) != sizeof(ask))
		die("send");
	give(fd, to_server);
	take(fd, to_client);
	close(fd);
	printf("talk %d %u %u %lu %lu %llu %llu %llu\n", family == AF_INET ? 4 : 6, own, port, to_server + sizeof(ask),
	       to_client, begin, end, now());
}

static void refused(void)
{
	union address a;
	int fd = listener(AF_INET);
	unsigned short port = port_of(fd);
	socklen_t len = local(&a, AF_INET, port);

	close(fd);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (!connect(fd, &a.any, len) || errno != ECONNREFUSED)
		die("it was not refused");
	close(fd);
	printf("refused %u\n", port);
}

static void run(int family)
{
	static const unsigned long sizes[][2] = { { 0, 0 }, { 1, 0 }, { 0, 1 }, { 1000, 70000 }, { 5 << 20, 3 << 20 } };
	int listening = listener(family);
	pid_t child;

	if (listening < 0) {
		printf("none %d\n", family == AF_INET ? 4 : 6);
		return;
	}
	fflush(stdout);
	child = fork();
	if (!child)
		serve(listening);
	printf("server %d\n", child);
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		talk(family, port_of(listening), sizes[i][0], sizes[i][1]);
	/* the server has handled the end of the last connection when it serves the next one */
	talk(family, port_of(listening), 0, 0);
	usleep(200000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(listening);
}

int main(void)
{
	getchar();
	run(AF_INET);
	run(AF_INET6);
	refused();
	return 0;
}
