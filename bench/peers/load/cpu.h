/* SPDX-License-Identifier: MIT */
/* CPU seconds: of a process, of this one, and of the machine as a whole. */
#ifndef BENCH_CPU_H
#define BENCH_CPU_H

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Seconds the whole machine was busy, or stolen by the hypervisor. */
static inline double machine_cpu(void)
{
	unsigned long long user, nice, sys, idle, wait, irq, soft, steal;
	FILE *f = fopen("/proc/stat", "r");
	int fields = 0;

	if (f == NULL)
		return 0;
	fields = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu",
			&user, &nice, &sys, &idle, &wait, &irq, &soft, &steal);
	fclose(f);
	if (fields != 8)
		return 0;
	return (double)(user + nice + sys + irq + soft + steal) /
	       (double)sysconf(_SC_CLK_TCK);
}

static inline double rusage_cpu(const struct rusage *ru)
{
	return (double)(ru->ru_utime.tv_sec + ru->ru_stime.tv_sec) +
	       (double)(ru->ru_utime.tv_usec + ru->ru_stime.tv_usec) / 1e6;
}

static inline double self_cpu(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return rusage_cpu(&ru);
}

/* User and system time of all threads of a process; -1 if it has ended. */
static inline double pid_cpu(int pid)
{
	char path[64], stat[1024], *name_end;
	unsigned long user = 0, sys = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (f == NULL)
		return -1;
	n = fread(stat, 1, sizeof(stat) - 1, f);
	fclose(f);
	stat[n] = '\0';
	name_end = strrchr(stat, ')');
	if (name_end == NULL ||
	    sscanf(name_end + 2,
		   "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
		   &user, &sys) != 2)
		return -1;
	return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

/* Resident memory of a process; -1 if it has ended. */
static inline long pid_rss_kb(int pid)
{
	char path[64], line[256];
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	if (f == NULL)
		return -1;
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "VmRSS: %ld", &kb) == 1)
			break;
	fclose(f);
	return kb;
}

#endif
