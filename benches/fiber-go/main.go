// The rows of the workload `fiber` on goroutines: `main ROW COUNT WORKERS` prints the row's figure.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

const ring = 403

func main() {
	count, _ := strconv.Atoi(os.Args[2])
	workers, _ := strconv.Atoi(os.Args[3])
	runtime.GOMAXPROCS(workers)
	switch os.Args[1] {
	case "yield":
		fmt.Println(perStep(count, func() { yields(count) }))
	case "hop":
		hop(count)
	case "spawn":
		fmt.Println(perStep(count, func() {
			for n := 0; n < count; n++ {
				done := make(chan struct{})
				go func() { close(done) }()
				<-done
			}
		}))
	case "fresh":
		fmt.Println(perStep(count, func() { together(count) }))
	case "parked":
		parked(count)
	case "units":
		units(count)
	case "echo":
		echo()
	default:
		os.Exit(2)
	}
}

func perStep(count int, work func()) float64 {
	began := time.Now()
	work()
	return float64(time.Since(began).Nanoseconds()) / float64(count)
}

func yields(count int) {
	var both sync.WaitGroup
	for n := 0; n < 2; n++ {
		both.Add(1)
		go func() {
			for n := 0; n < count/2; n++ {
				runtime.Gosched()
			}
			both.Done()
		}()
	}
	both.Wait()
}

func hop(count int) {
	first := make(chan int, 1)
	inbox := first
	for n := 0; n < ring; n++ {
		from, to := inbox, make(chan int, 1)
		go func() {
			for token := range from {
				to <- token
			}
		}()
		inbox = to
	}
	first <- 0
	<-inbox
	rounds := count/ring + 1
	fmt.Println(perStep(rounds*ring, func() {
		for n := 0; n < rounds; n++ {
			first <- n
			<-inbox
		}
	}))
}

func together(count int) {
	var all sync.WaitGroup
	release := make(chan struct{})
	all.Add(count)
	for n := 0; n < count; n++ {
		go func() {
			<-release
			all.Done()
		}()
	}
	close(release)
	all.Wait()
}

// memory returns the resident memory and the page tables, in bytes.
func memory() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	var kib float64
	for _, line := range strings.Split(string(status), "\n") {
		fields := strings.Fields(line)
		if len(fields) > 1 && (fields[0] == "VmRSS:" || fields[0] == "VmPTE:") {
			value, _ := strconv.ParseFloat(fields[1], 64)
			kib += value
		}
	}
	return kib * 1024
}

func parked(count int) {
	before := memory()
	release := make(chan struct{})
	var started sync.WaitGroup
	started.Add(count)
	time := perStep(count, func() {
		for n := 0; n < count; n++ {
			go func() {
				started.Done()
				<-release
			}()
		}
		started.Wait()
	})
	maps, _ := os.ReadFile("/proc/self/maps")
	fmt.Println((memory()-before)/float64(count), time, strings.Count(string(maps), "\n"))
}

// Of `count` goroutines, 10,000 have a permit and wait, and the others wait for one.
func units(count int) {
	release, permits := make(chan struct{}), make(chan struct{}, 10000)
	var spawned sync.WaitGroup
	spawned.Add(count)
	for n := 0; n < count; n++ {
		go func() {
			spawned.Done()
			permits <- struct{}{}
			<-release
		}()
	}
	spawned.Wait()
	fmt.Println(memory() / float64(count))
}

func echo() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() {
		for {
			stream, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				buf := make([]byte, 4096)
				for {
					read, err := stream.Read(buf)
					if err != nil {
						stream.Close()
						return
					}
					if _, err := stream.Write(buf[:read]); err != nil {
						stream.Close()
						return
					}
				}
			}()
		}
	}()
	// The end of standard input ends the server.
	os.Stdin.Read(make([]byte, 1))
}
