// SPDX-License-Identifier: MIT

// Go beside weft: echo server, micro-benchmarks, file work.
//
//	gopeer echo  --port P --threads T [--buf N]
//	gopeer micro BENCH --workers T [--label L]
//	gopeer file  rand_cached|rand_direct|write|copy_pipe|copy_par|copy_io --workers T --path F [--dst G] [--secs S]
//
// Every result is one JSON line. GOMAXPROCS is the number of workers.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

type options struct {
	port, buf, workers int
	secs               float64
	label, path, dst   string
	words              []string
}

var opt = options{workers: 1, buf: 4096, secs: 2, label: "go"}

func emit(bench string, v float64, unit string) {
	fmt.Printf("{\"bench\":\"%s\",\"peer\":\"%s\",\"workers\":%d,\"value\":%.3f,\"unit\":\"%s\"}\n",
		bench, opt.label, opt.workers, v, unit)
}

func perOp(bench string, d time.Duration, n int) {
	emit(bench, float64(d.Nanoseconds())/float64(n), "ns/op")
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(c net.Conn, buf int) {
	defer c.Close()
	b := make([]byte, buf)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if _, err = c.Write(b[:n]); err != nil {
			return
		}
	}
}

func echo(port, buf int) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	must(err)
	for {
		c, err := l.Accept()
		must(err)
		go serve(c, buf)
	}
}

func (o *options) set(name, v string) (err error) {
	switch name {
	case "--port":
		o.port, err = strconv.Atoi(v)
	case "--threads", "--workers":
		o.workers, err = strconv.Atoi(v)
	case "--buf":
		o.buf, err = strconv.Atoi(v)
	case "--secs":
		o.secs, err = strconv.ParseFloat(v, 64)
	case "--label":
		o.label = v
	case "--path":
		o.path = v
	case "--dst":
		o.dst = v
	default:
		err = fmt.Errorf("unknown option %s", name)
	}
	return err
}

func (o *options) parse(args []string) {
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "--") {
			o.words = append(o.words, args[i])
			continue
		}
		if i+1 == len(args) {
			must(fmt.Errorf("option %s needs a value", args[i]))
		}
		must(o.set(args[i], args[i+1]))
		i++
	}
}

func main() {
	opt.parse(os.Args[1:])
	runtime.GOMAXPROCS(opt.workers)
	words := append(opt.words, "", "")
	switch words[0] {
	case "echo":
		echo(opt.port, opt.buf)
	case "micro":
		micro(words[1])
	case "file":
		file(words[1])
	default:
		must(fmt.Errorf("echo | micro | file"))
	}
}
