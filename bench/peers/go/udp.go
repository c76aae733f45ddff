// SPDX-License-Identifier: MIT

package main

import (
	"net"
	"syscall"
	"time"
)

// A datagram a call, as package net has it: one goroutine sends as many as a
// round of bench_udp from one socket to another, and receives them there.
type udpLoad struct {
	bench        string
	count, bytes int
}

const udpBuffer = 1 << 20

func cpuTime() time.Duration {
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func udpSockets() (in, out *net.UDPConn) {
	in, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(err)
	must(in.SetReadBuffer(udpBuffer))
	out, err = net.DialUDP("udp4", nil, in.LocalAddr().(*net.UDPAddr))
	must(err)
	return in, out
}

func (l udpLoad) round(in, out *net.UDPConn, message, buf []byte) {
	for i := 0; i < l.count; i++ {
		_, err := out.Write(message)
		must(err)
	}
	for i := 0; i < l.count; i++ {
		_, _, err := in.ReadFromUDPAddrPort(buf)
		must(err)
	}
}

// measure ends the program if a datagram is lost, when no other comes.
func (l udpLoad) measure() {
	in, out := udpSockets()
	message, buf := make([]byte, l.bytes), make([]byte, 1<<16)
	end := time.Now().Add(time.Duration(opt.secs * 1e9))
	must(in.SetReadDeadline(end.Add(5 * time.Second)))
	began, done := cpuTime(), 0
	for time.Now().Before(end) {
		for i := 0; i < 64; i++ {
			l.round(in, out, message, buf)
			done += l.count
		}
	}
	emit(l.bench, float64(done)/(cpuTime()-began).Seconds(), "datagrams/cpu-s")
	must(in.Close())
	must(out.Close())
}

func udp() {
	udpLoad{"udp", 64, 1200}.measure()
	udpLoad{"udp_plain", 16, 100}.measure()
}
