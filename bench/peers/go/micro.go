// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func rss() int64 {
	b, _ := os.ReadFile("/proc/self/statm")
	n, _ := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	return n * int64(os.Getpagesize())
}

// spawnJoin spawns a goroutine and waits for it, one after the other.
func spawnJoin(bench string, body func(*sync.WaitGroup)) {
	n := 1000000
	var w sync.WaitGroup
	t := time.Now()
	for i := 0; i < n; i++ {
		w.Add(1)
		go body(&w)
		w.Wait()
	}
	perOp(bench, time.Since(t), n)
}

func forkJoinRound(n int, body func(*sync.WaitGroup)) {
	var w sync.WaitGroup
	w.Add(n)
	for i := 0; i < n; i++ {
		go body(&w)
	}
	w.Wait()
}

// forkJoin reports the first round, on a cold heap, separately.
func forkJoin(bench string, body func(*sync.WaitGroup)) {
	n, rounds := 100000, 10
	t := time.Now()
	forkJoinRound(n, body)
	perOp(bench+"_cold", time.Since(t), n)
	t = time.Now()
	for r := 0; r < rounds; r++ {
		forkJoinRound(n, body)
	}
	perOp(bench, time.Since(t), n*rounds)
}

func empty(w *sync.WaitGroup) { w.Done() }

func suspended(w *sync.WaitGroup) {
	runtime.Gosched()
	w.Done()
}

func yield() {
	n := 3000000
	t := time.Now()
	for i := 0; i < n; i++ {
		runtime.Gosched()
	}
	perOp("yield_1", time.Since(t), n)
	tasks, each := 1000, 3000
	var w sync.WaitGroup
	t = time.Now()
	for i := 0; i < tasks; i++ {
		w.Add(1)
		go func() {
			for k := 0; k < each; k++ {
				runtime.Gosched()
			}
			w.Done()
		}()
	}
	w.Wait()
	perOp("yield_1000", time.Since(t), tasks*each)
}

func pingpong() {
	n := 300000
	a, b := make(chan uint64, 1), make(chan uint64, 1)
	done := make(chan int)
	t := time.Now()
	go func() {
		for v := range a {
			b <- v
		}
		close(done)
	}()
	for i := 0; i < n; i++ {
		a <- uint64(i)
		<-b
	}
	close(a)
	<-done
	perOp("pingpong_chan", time.Since(t), n)
}

func oneshot() {
	n := 300000
	rq := make(chan chan uint64, 1)
	t := time.Now()
	go func() {
		for r := range rq {
			r <- 1
		}
	}()
	for i := 0; i < n; i++ {
		r := make(chan uint64, 1)
		rq <- r
		<-r
	}
	close(rq)
	perOp("request_oneshot", time.Since(t), n)
}

func chanRun(p, c, total int) time.Duration {
	ch := make(chan uint64, 1024)
	var pw, cw sync.WaitGroup
	var got int64
	t := time.Now()
	for i := 0; i < p; i++ {
		pw.Add(1)
		go func() {
			for k := 0; k < total/p; k++ {
				ch <- uint64(k)
			}
			pw.Done()
		}()
	}
	for i := 0; i < c; i++ {
		cw.Add(1)
		go func() {
			n := int64(0)
			for range ch {
				n++
			}
			atomic.AddInt64(&got, n)
			cw.Done()
		}()
	}
	pw.Wait()
	close(ch)
	cw.Wait()
	if got != int64(total) {
		panic("lost messages")
	}
	return time.Since(t)
}

func mutexRun(tasks, total int, yield bool) time.Duration {
	var m sync.Mutex
	var w sync.WaitGroup
	v := 0
	t := time.Now()
	for i := 0; i < tasks; i++ {
		w.Add(1)
		go func() {
			for k := 0; k < total/tasks; k++ {
				m.Lock()
				v++
				if yield {
					runtime.Gosched()
				}
				m.Unlock()
			}
			w.Done()
		}()
	}
	w.Wait()
	if v != total/tasks*tasks {
		panic("lost updates")
	}
	return time.Since(t)
}

func semUncontended(n int) {
	s := make(chan struct{}, 1)
	t := time.Now()
	for i := 0; i < n; i++ {
		s <- struct{}{}
		<-s
	}
	perOp("sem_uncontended", time.Since(t), n)
}

func semYield(tasks, total int) {
	s := make(chan struct{}, 2)
	var w sync.WaitGroup
	t := time.Now()
	for i := 0; i < tasks; i++ {
		w.Add(1)
		go func() {
			for k := 0; k < total/tasks; k++ {
				s <- struct{}{}
				runtime.Gosched()
				<-s
			}
			w.Done()
		}()
	}
	w.Wait()
	perOp("sem2_8tasks_yield", time.Since(t), total)
}

// timerAfter returns 10 to 60 s.
func timerAfter(i int) time.Duration {
	return time.Duration(10000+i*7919%50000) * time.Millisecond
}

func timer() {
	n := 1000000
	v := make([]*time.Timer, n)
	f := func() {}
	t := time.Now()
	for i := range v {
		v[i] = time.AfterFunc(timerAfter(i), f)
	}
	perOp("timer_insert_1M", time.Since(t), n)
	t = time.Now()
	for i := range v {
		v[i].Stop()
	}
	perOp("timer_cancel_1M", time.Since(t), n)
	t = time.Now()
	for i := 0; i < n; i++ {
		time.AfterFunc(timerAfter(i), f).Stop()
	}
	perOp("timer_insert_cancel_pair", time.Since(t), n)
}

func sleepRound(round string) {
	n := 100000
	late := make([]int64, n)
	var w sync.WaitGroup
	w.Add(n)
	t := time.Now()
	for i := 0; i < n; i++ {
		i := i
		go func() {
			s := time.Now()
			time.Sleep(10 * time.Millisecond)
			late[i] = int64(time.Since(s) - 10*time.Millisecond)
			w.Done()
		}()
	}
	w.Wait()
	emit("sleep100k_total"+round, float64(time.Since(t).Microseconds())/1e3, "ms")
	sort.Slice(late, func(a, b int) bool { return late[a] < late[b] })
	emit("sleep100k_late_p50"+round, float64(late[n/2])/1e3, "us")
	emit("sleep100k_late_p99"+round, float64(late[n*99/100])/1e3, "us")
	emit("sleep100k_late_max"+round, float64(late[n-1])/1e3, "us")
}

func skynet(c chan uint64, num, size uint64) {
	if size == 1 {
		c <- num
		return
	}
	rc := make(chan uint64, 10)
	for i := uint64(0); i < 10; i++ {
		go skynet(rc, num+i*(size/10), size/10)
	}
	var sum uint64
	for i := 0; i < 10; i++ {
		sum += <-rc
	}
	c <- sum
}

func skynetRun() {
	c := make(chan uint64, 1)
	t := time.Now()
	go skynet(c, 0, 1000000)
	if <-c != 499999500000 {
		panic("wrong sum")
	}
	emit("skynet_1M", float64(time.Since(t).Microseconds())/1e3, "ms")
}

func mem() {
	n := 1000000
	var up int64
	r0 := rss()
	for i := 0; i < n; i++ {
		go func() {
			atomic.AddInt64(&up, 1)
			time.Sleep(time.Hour)
		}()
	}
	for atomic.LoadInt64(&up) < int64(n) {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	emit("mem_per_sleeping_task", float64(rss()-r0)/float64(n), "bytes")
}

func channels() {
	n := 2000000
	perOp("chan_1p1c", chanRun(1, 1, n), n)
	perOp("chan_4p1c", chanRun(4, 1, n), n)
	perOp("chan_4p4c", chanRun(4, 4, n), n)
}

func locks() {
	perOp("mutex_uncontended", mutexRun(1, 5000000, false), 5000000)
	perOp("mutex_8tasks", mutexRun(8, 2000000, false), 2000000)
	perOp("mutex_8tasks_yield", mutexRun(8, 1000000, true), 1000000)
	semUncontended(5000000)
	semYield(8, 1000000)
}

var benches = map[string]func(){
	"spawn_join":         func() { spawnJoin("spawn_join", empty) },
	"spawn_join_suspend": func() { spawnJoin("spawn_join_suspend", suspended) },
	"fork_join":          func() { forkJoin("fork_join_100k", empty) },
	"fork_join_suspend":  func() { forkJoin("fork_join_suspend", suspended) },
	"yield":              yield,
	"pingpong":           func() { pingpong(); oneshot() },
	"channel":            channels,
	"mutex":              locks,
	"timer":              timer,
	"sleep":              func() { sleepRound("_cold"); sleepRound("") },
	"skynet":             skynetRun,
	"mem":                mem,
	"udp":                udp,
}

func micro(bench string) {
	run, ok := benches[bench]
	if !ok {
		must(fmt.Errorf("unknown bench %s", bench))
	}
	run()
}
