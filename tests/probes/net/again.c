// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * again: makes the kernel retransmit segments in a network namespace of its own, whose counters have their number.
 * First to a receiver that acknowledges late, then to one that drops segments. Prints one line per connection:
 *
 *	late|lost CLIENT-PORT SEGMENTS-SENT-AGAIN OF-THEM-TAIL-LOSS-PROBES
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ENOUGH 3
#define TRIES  60

static void die(const char *what)
{
	fprintf(stderr, "again: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void lo_up(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &r))
		die("lo");
	close(fd);
}

/* A counter of /proc/net/snmp or netstat: two lines begin with the group, names and numbers. */
static long counter(const char *file, const char *group, const char *name)
{
	char names[8192], numbers[8192], *n, *v, *a, *b;
	FILE *f = fopen(file, "r");

	while (f && fgets(names, sizeof(names), f) && fgets(numbers, sizeof(numbers), f)) {
		if (strncmp(names, group, strlen(group)))
			continue;
		n = strtok_r(names, " \n", &a);
		v = strtok_r(numbers, " \n", &b);
		for (; n && v; n = strtok_r(NULL, " \n", &a), v = strtok_r(NULL, " \n", &b))
			if (!strcmp(n, name)) {
				fclose(f);
				return atol(v);
			}
	}
	die(name);
	return 0;
}

struct counts {
	long again, probes;
};

static struct counts counts(void)
{
	return (struct counts){ counter("/proc/thread-self/net/snmp", "Tcp:", "RetransSegs"),
				counter("/proc/thread-self/net/netstat", "TcpExt:", "TCPLossProbes") };
}

static void both_ends(int *client, int *server)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listening = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	socklen_t len = sizeof(a);

	*client = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listening, (void *)&a, len) || listen(listening, 1) || getsockname(listening, (void *)&a, &len) ||
	    connect(*client, (void *)&a, len))
		die("connect");
	*server = accept(listening, NULL, NULL);
	if (*server < 0 || setsockopt(*client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		die("accept");
	close(listening);
}

static void take(int fd, size_t n)
{
	char buf[256];

	if (recv(fd, buf, n, MSG_WAITALL) != (ssize_t)n)
		die("recv");
}

static void give(int fd, size_t n)
{
	char buf[256] = "";

	if (send(fd, buf, n, 0) != (ssize_t)n)
		die("send");
}

/* After some requests with answers the kernel delays acknowledgements, to send them with the next answer. */
static void talk(int client, int server)
{
	for (int i = 0; i < 40; i++) {
		give(client, 100);
		take(server, 100);
		give(server, 100);
		take(client, 100);
	}
}

static void end(const char *what, int client, int server, struct counts before)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	struct counts now = counts();

	if (getsockname(client, (void *)&a, &len))
		die("getsockname");
	close(client);
	close(server);
	printf("%s %u %ld %ld\n", what, ntohs(a.sin_port), now.again - before.again, now.probes - before.probes);
}

static void late(void)
{
	struct counts before = counts();
	int client, server;

	both_ends(&client, &server);
	talk(client, server);
	for (int i = 0; i < TRIES && counts().probes < before.probes + ENOUGH; i++) {
		give(client, 100);
		give(client, 100);
		/* reading sends an acknowledgement, so the receiver reads later */
		usleep(60000);
		take(server, 200);
		/* an answer, so that the kernel keeps delaying acknowledgements */
		give(server, 100);
		take(client, 100);
	}
	end("late", client, server, before);
}

static void lost(void)
{
	struct sock_filter drop[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog program = { 1, drop };
	struct counts before = counts();
	int client, server, nothing = 0;

	both_ends(&client, &server);
	talk(client, server);
	if (setsockopt(server, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		die("filter");
	give(client, 100);
	give(client, 100);
	for (int i = 0; i < 40; i++) {
		struct counts now = counts();

		if (now.again - now.probes >= before.again - before.probes + 2)
			break;
		usleep(100000);
	}
	if (setsockopt(server, SOL_SOCKET, SO_DETACH_FILTER, &nothing, sizeof(nothing)))
		die("filter");
	take(server, 200);
	give(server, 100);
	take(client, 100);
	end("lost", client, server, before);
}

int main(void)
{
	if (unshare(CLONE_NEWNET)) {
		printf("none\n");
		return 0;
	}
	lo_up();
	getchar();
	late();
	lost();
	usleep(100000);
	return 0;
}
