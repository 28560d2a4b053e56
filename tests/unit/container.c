// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Cgroup paths of container runtimes, and hostile ones. */
#include "process/container.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define ID  "3f4a5b6c7d8e9f00112233445566778899aabbccddeeff00112233445566aabb"
#define ID2 "00ffeeddccbbaa998877665544332211003f4a5b6c7d8e9f0011223344556677"

static const struct {
	const char *path, *name, *pod;
} paths[] = {
	/* no container */
	{ "/", "", "" },
	{ "", "", "" },
	{ "/user.slice/user-1000.slice/session-3.scope", "", "" },
	{ "/system.slice/ssh.service", "", "" },
	{ "/system.slice/docker.service", "", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice", "", "" },
	{ "/init.scope", "", "" },
	{ "/system.slice/slurmstepd.scope/job_1234/step_0/user/task_0", "", "" },
	/* docker: systemd and cgroupfs drivers, rootless, docker in docker */
	{ "/system.slice/docker-" ID ".scope", "docker-3f4a5b6c7d8e", "" },
	{ "/docker/" ID, "docker-3f4a5b6c7d8e", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID ".scope", "docker-3f4a5b6c7d8e", "" },
	{ "/docker/" ID "/docker/" ID2, "docker-00ffeeddccbb", "" },
	{ "/docker/" ID "/init.scope", "docker-3f4a5b6c7d8e", "" },
	{ "/docker/" ID "/system.slice/nginx.service", "docker-3f4a5b6c7d8e", "" },
	/* containerd and nerdctl */
	{ "/system.slice/nerdctl-" ID ".scope", "containerd-3f4a5b6c7d8e", "" },
	{ "/default/" ID, "3f4a5b6c7d8e", "" },
	{ "/k8s.io/" ID, "3f4a5b6c7d8e", "" },
	/* podman */
	{ "/machine.slice/libpod-" ID ".scope", "podman-3f4a5b6c7d8e", "" },
	{ "/machine.slice/libpod-" ID ".scope/container", "podman-3f4a5b6c7d8e", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container",
	  "podman-3f4a5b6c7d8e", "" },
	{ "/libpod_parent/libpod-" ID, "podman-3f4a5b6c7d8e", "" },
	/* Kubernetes */
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod0a1b2c3d_1234_5678_9abc_def012345678.slice/"
	  "cri-containerd-" ID ".scope",
	  "containerd-3f4a5b6c7d8e", "0a1b2c3d-1234-5678-9abc-def012345678" },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_1234_5678_9abc_def012345678.slice/"
	  "crio-" ID ".scope",
	  "crio-3f4a5b6c7d8e", "0a1b2c3d-1234-5678-9abc-def012345678" },
	{ "/kubepods.slice/kubepods-pod0a1b2c3d_1234_5678_9abc_def012345678.slice/docker-" ID ".scope",
	  "docker-3f4a5b6c7d8e", "0a1b2c3d-1234-5678-9abc-def012345678" },
	{ "/kubepods/besteffort/pod0a1b2c3d-1234-5678-9abc-def012345678/" ID, "3f4a5b6c7d8e",
	  "0a1b2c3d-1234-5678-9abc-def012345678" },
	{ "/kubepods/pod0a1b2c3d-1234-5678-9abc-def012345678", "", "0a1b2c3d-1234-5678-9abc-def012345678" },
	{ "/kubepods-burstable-pod0a1b2c3d_1234_5678_9abc_def012345678.slice:cri-containerd:" ID,
	  "containerd-3f4a5b6c7d8e", "0a1b2c3d-1234-5678-9abc-def012345678" },
	{ "/system.slice/containerd.service/kubepods-burstable-pod0a1b2c3d_1234_5678_9abc_def012345678.slice:"
	  "cri-containerd:" ID,
	  "containerd-3f4a5b6c7d8e", "0a1b2c3d-1234-5678-9abc-def012345678" },
	/* kind, whose nodes are containers */
	{ "/docker/" ID "/kubelet/kubepods/burstable/pod0a1b2c3d-1234-5678-9abc-def012345678/" ID2, "00ffeeddccbb",
	  "0a1b2c3d-1234-5678-9abc-def012345678" },
	/* relative to the cgroup namespace of another container */
	{ "/../cri-containerd-" ID ".scope", "containerd-3f4a5b6c7d8e", "" },
	{ "/../../pod0a1b2c3d-1234-5678-9abc-def012345678/" ID, "3f4a5b6c7d8e",
	  "0a1b2c3d-1234-5678-9abc-def012345678" },
	/* containers with names */
	{ "/lxc/web01", "lxc-web01", "" },
	{ "/lxc.payload.web01", "lxc-web01", "" },
	{ "/lxc.payload.web01/system.slice/nginx.service", "lxc-web01", "" },
	{ "/lxc.monitor.web01", "", "" },
	{ "/machine.slice/machine-debian.scope/payload", "machine-debian", "" },
	/* hostile paths */
	{ "/docker/" ID "0", "", "" },
	{ "/docker/3F4A5B6C7D8E9F00112233445566778899AABBCCDDEEFF00112233445566AABB", "", "" },
	{ "/docker/3f4a", "", "" },
	{ "/docker-" ID ".scop", "", "" },
	{ "/lxc/\033[31m", "", "" },
	{ "/lxc/a\nb", "lxc-a", "" },
	{ "/lxc/", "", "" },
	{ "/lxc", "", "" },
	{ "/pod0a1b2c3d-1234-5678-9abc", "", "" },
	{ "/kubepods-pod", "", "" },
	{ "/kubepods-", "", "" },
	{ "/-pod", "", "" },
	{ "/podzzzzzzzz-1234-5678-9abc-def012345678", "", "" },
	{ "////" ID "////", "3f4a5b6c7d8e", "" },
	{ ".scope", "", "" },
	{ "/lxc/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	  "lxc-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "" },
};

TEST(containers_are_recognized_by_their_paths)
{
	for (u32 i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		/* a copy, so that the sanitizer detects reads beyond its end */
		char *path = strdup(paths[i].path);
		struct container c;
		bool same;

		container__parse(&c, path);
		same = !strcmp(c.name, paths[i].name) && !strcmp(c.pod, paths[i].pod);
		if (!same)
			printf("# %s: '%s' in '%s', expected '%s' in '%s'\n", path, c.name, c.pod, paths[i].name,
			       paths[i].pod);
		CHECK(same);
		free(path);
	}
}

static bool reads(const char *text, const char *path, const char *name)
{
	struct container c;
	char buf[64];
	bool same;

	container__read(&c, text, buf, sizeof(buf));
	same = !strncmp(buf, path, sizeof(buf) - 1) && !strcmp(c.name, name);
	if (!same)
		printf("# '%s' '%s', expected '%s' '%s'\n", buf, c.name, path, name);
	return same;
}

TEST(the_most_specific_line_is_used)
{
	CHECK(reads("0::/system.slice/x.service\n", "/system.slice/x.service", ""));
	CHECK(reads("9:name=systemd:/s\n4:memory:/m\n0::/\n", "/s", ""));
	CHECK(reads("9:name=systemd:/s\n4:memory:/docker/" ID "\n0::/\n", "/docker/" ID, "docker-3f4a5b6c7d8e"));
	CHECK(reads("4:cpu,cpuacct:/a:b\n", "/a:b", ""));
	CHECK(reads("0::/\n", "/", ""));
	CHECK(reads("", "", ""));
	CHECK(reads("no colon\n:\n::\n", "", ""));
	CHECK(reads("0::/no/newline", "/no/newline", ""));
}

TEST(long_paths_are_cut)
{
	char *text = malloc(100000);
	struct container c;
	char buf[64];

	memset(text, 'x', 100000);
	memcpy(text, "0::/", 4);
	text[99999] = '\0';
	container__read(&c, text, buf, sizeof(buf));
	CHECK(strlen(buf) == sizeof(buf) - 1);
	CHECK(!*c.name);
	free(text);
}

TEST_MAIN()
