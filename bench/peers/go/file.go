// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	block = 4096
	chunk = 256 << 10
)

func aligned() []byte {
	b := make([]byte, 2*block)
	o := int(uintptr(unsafe.Pointer(&b[0])) & (block - 1))
	if o != 0 {
		o = block - o
	}
	return b[o : o+block]
}

func readBlocks(f *os.File, size int64, seed uint64, end time.Time) (n int64) {
	b := aligned()
	for time.Now().Before(end) {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		_, err := f.ReadAt(b, int64(seed%uint64(size/block))*block)
		must(err)
		n++
	}
	return n
}

func random(bench string, flags int, size int64) {
	f, err := os.OpenFile(opt.path, os.O_RDONLY|flags, 0)
	must(err)
	t := time.Now()
	end := t.Add(time.Duration(opt.secs * 1e9))
	var total int64
	var w sync.WaitGroup
	for i := 0; i < 32; i++ {
		w.Add(1)
		go func(seed uint64) {
			atomic.AddInt64(&total, readBlocks(f, size, seed, end))
			w.Done()
		}(0x9e3779b97f4a7c15 ^ uint64(i+1))
	}
	w.Wait()
	emit(bench, float64(total)/time.Since(t).Seconds(), "iops")
}

// readChunks sends the file's chunks to ch, and closes ch.
func readChunks(r io.Reader, ch chan<- []byte) {
	defer close(ch)
	for {
		b := make([]byte, chunk)
		n, err := io.ReadFull(r, b)
		if n > 0 {
			ch <- b[:n]
		}
		if err != nil {
			return
		}
	}
}

func copyPipe(w, r *os.File, size int64) {
	ch := make(chan []byte, 8)
	go readChunks(r, ch)
	for b := range ch {
		_, err := w.Write(b)
		must(err)
	}
}

func copyChunks(w, r *os.File, size int64, next *int64) {
	b := make([]byte, chunk)
	for {
		off := atomic.AddInt64(next, chunk) - chunk
		if off >= size {
			return
		}
		n, err := r.ReadAt(b, off)
		if err != nil && err != io.EOF {
			must(err)
		}
		_, err = w.WriteAt(b[:n], off)
		must(err)
	}
}

func copyPar(w, r *os.File, size int64) {
	var next int64
	var wg sync.WaitGroup
	for i := 0; i < 8; i++ {
		wg.Add(1)
		go func() {
			copyChunks(w, r, size, &next)
			wg.Done()
		}()
	}
	wg.Wait()
}

func copyIO(w, r *os.File, size int64) {
	_, err := io.Copy(w, r)
	must(err)
}

func copyWith(how func(w, r *os.File, size int64), size int64) {
	t := time.Now()
	r, err := os.Open(opt.path)
	must(err)
	w, err := os.Create(opt.dst)
	must(err)
	how(w, r, size)
	emit("copy", float64(size)/time.Since(t).Seconds()/1e6, "MB/s")
	must(syscall.Fdatasync(int(w.Fd())))
	emit("copy_synced", float64(size)/time.Since(t).Seconds()/1e6, "MB/s")
}

func writeOne() {
	const blocks = 256
	b := make([]byte, 4096)
	w, err := os.Create(opt.dst)
	must(err)
	round := func() {
		for i := int64(0); i < blocks; i++ {
			_, err := w.WriteAt(b, i*int64(len(b)))
			must(err)
		}
	}
	round()
	n, t := 0, time.Now()
	for ; time.Since(t).Seconds() < opt.secs; n += blocks {
		round()
	}
	emit("write", time.Since(t).Seconds()*1e6/float64(n), "us")
}

func file(which string) {
	st, err := os.Stat(opt.path)
	must(err)
	switch which {
	case "rand_cached":
		random(which, 0, st.Size())
	case "rand_direct":
		random(which, syscall.O_DIRECT, st.Size())
	case "write":
		writeOne()
	case "copy_io":
		copyWith(copyIO, st.Size())
	case "copy_pipe":
		copyWith(copyPipe, st.Size())
	case "copy_par":
		copyWith(copyPar, st.Size())
	default:
		must(fmt.Errorf("unknown case %s", which))
	}
}
