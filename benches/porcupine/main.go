// Runs porcupine on the histories that Millstream's benchmark decides.
//
//	porcupine etcd FOLDER       every etcd_*.log of the folder that has operations
//	porcupine kv FILE           a log of a key-value store
//	porcupine register FOLDER   every *.jsonl of the folder: histories of registers as JSON lines
//	porcupine queue FOLDER      the same for histories of queues
//
// The time to read them does not count. Prints the total milliseconds and, for each history in order of the file names,
// "y" (linearizable), "n" (not linearizable) or "?" (not decided in five seconds).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const initial = -1

type input struct {
	op       string
	old, new int
}

type output struct {
	value   int
	ok      bool
	unknown bool
}

// register has reads, writes and compare-and-sets; an output may be unknown.
var register = porcupine.Model{
	Init: func() interface{} { return initial },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		held, i, o := state.(int), in.(input), out.(output)
		switch i.op {
		case "read":
			return o.unknown || o.value == held, held
		case "write":
			return true, i.new
		default:
			done := held == i.old
			if done {
				held = i.new
			}
			return o.unknown || o.ok == done, held
		}
	},
}

// queue is unbounded; its state is its contents, two bytes per value.
var queue = porcupine.Model{
	Init: func() interface{} { return "" },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		held, i, o := state.(string), in.(input), out.(output)
		switch {
		case i.op == "enqueue":
			return true, held + string([]byte{byte(i.new >> 8), byte(i.new)})
		case held == "":
			return o.value == initial, held
		default:
			return o.value == int(held[0])<<8|int(held[1]), held[2:]
		}
	},
}

// call is a client's request about a key of the store, and answer is the result of a get.
type call struct {
	op, key, value string
}

type answer string

// store has gets, puts and appends; each key is checked separately and starts with an empty text.
var store = porcupine.Model{
	PartitionEvent: func(events []porcupine.Event) [][]porcupine.Event {
		numbers := map[string]int{}
		keys := map[int]int{}
		var parts [][]porcupine.Event
		for _, event := range events {
			if asked, isCall := event.Value.(call); isCall {
				if _, known := numbers[asked.key]; !known {
					numbers[asked.key] = len(parts)
					parts = append(parts, nil)
				}
				keys[event.Id] = numbers[asked.key]
			}
			key := keys[event.Id]
			parts[key] = append(parts[key], event)
		}
		return parts
	},
	Init: func() interface{} { return "" },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		held, asked := state.(string), in.(call)
		switch asked.op {
		case "get":
			return string(out.(answer)) == held, held
		case "put":
			return true, asked.value
		default:
			return true, held + asked.value
		}
	},
}

var storeLine = regexp.MustCompile(`^\{:process (\d+), :type :(invoke|ok), :f :(get|put|append), :key "(.*)", :value (?:nil|"(.*)")\}$`)

// readStore reads a log in which every call returns.
func readStore(path string) []porcupine.Event {
	file, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	var events []porcupine.Event
	open := map[int]int{}
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		fields := storeLine.FindStringSubmatch(scanner.Text())
		if fields == nil {
			log.Fatalf("%s: expected an event, found: %s", path, scanner.Text())
		}
		process, event := number(fields[1]), porcupine.Event{}
		if fields[2] == "invoke" {
			open[process] = len(events)
			event = porcupine.Event{Kind: porcupine.CallEvent, Value: call{fields[3], fields[4], fields[5]}, Id: len(events)}
		} else {
			event = porcupine.Event{Kind: porcupine.ReturnEvent, Value: answer(fields[5]), Id: open[process]}
			delete(open, process)
		}
		event.ClientId = process
		events = append(events, event)
	}
	if err := scanner.Err(); err != nil {
		log.Fatal(err)
	}
	if len(open) > 0 {
		log.Fatalf("%s: every call must return, but %d have not", path, len(open))
	}
	return events
}

const patience = 5 * time.Second

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: porcupine etcd|register|queue FOLDER, porcupine kv FILE")
	}
	var verdicts strings.Builder
	var spent time.Duration
	check := func(decide func() porcupine.CheckResult) {
		began := time.Now()
		result := decide()
		spent += time.Since(began)
		verdicts.WriteByte(map[porcupine.CheckResult]byte{porcupine.Ok: 'y', porcupine.Illegal: 'n', porcupine.Unknown: '?'}[result])
	}
	operations := func(model porcupine.Model) {
		for _, path := range files("*.jsonl") {
			operations := readOperations(path)
			check(func() porcupine.CheckResult { return porcupine.CheckOperationsTimeout(model, operations, patience) })
		}
	}
	switch os.Args[1] {
	case "etcd":
		for _, path := range files("etcd_*.log") {
			if events := readEtcd(path); len(events) > 0 {
				check(func() porcupine.CheckResult { return porcupine.CheckEventsTimeout(register, events, patience) })
			}
		}
	case "kv":
		events := readStore(os.Args[2])
		check(func() porcupine.CheckResult { return porcupine.CheckEventsTimeout(store, events, patience) })
	case "register":
		operations(register)
	case "queue":
		operations(queue)
	default:
		log.Fatalf("unknown kind of history `%s`: expected etcd, kv, register or queue", os.Args[1])
	}
	fmt.Printf("%.6f %s\n", float64(spent.Nanoseconds())/1e6, verdicts.String())
}

// files returns the matching files of the folder, sorted by name.
func files(pattern string) []string {
	paths, err := filepath.Glob(filepath.Join(os.Args[2], pattern))
	if err != nil {
		log.Fatal(err)
	}
	return paths
}

var line = regexp.MustCompile(`^INFO\s+jepsen\.util\s+-\s+(\d+)\s+:(invoke|ok|fail|info)\s+:(read|write|cas)\s+(.*)$`)

func readEtcd(path string) []porcupine.Event {
	file, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	var events []porcupine.Event
	open := map[int]int{}
	dropped := map[int]bool{}
	op := 0
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		fields := line.FindStringSubmatch(scanner.Text())
		if fields == nil {
			continue
		}
		process := number(fields[1])
		kind, name, value := fields[2], fields[3], strings.TrimSpace(fields[4])
		id, isOpen := open[process]
		switch {
		case kind == "invoke":
			in := input{op: name}
			numbers := regexp.MustCompile(`\d+`).FindAllString(value, -1)
			if name == "write" {
				in.new = number(numbers[0])
			} else if name == "cas" {
				in.old, in.new = number(numbers[0]), number(numbers[1])
			}
			events = append(events, porcupine.Event{ClientId: process, Kind: porcupine.CallEvent, Value: in, Id: op})
			open[process] = op
			op++
		case !isOpen:
			log.Fatalf("%s: process %d returns without a call in progress", path, process)
		case kind == "info":
			// The operation may still take effect: it returns at the end.
		case kind == "fail" && (name != "cas" || strings.HasPrefix(value, ":")):
			dropped[id] = true
			delete(open, process)
		default:
			out := output{value: initial, ok: kind == "ok"}
			if name == "read" && value != "nil" {
				out.value = number(value)
			}
			events = append(events, porcupine.Event{ClientId: process, Kind: porcupine.ReturnEvent, Value: out, Id: id})
			delete(open, process)
		}
	}
	if err := scanner.Err(); err != nil {
		log.Fatal(err)
	}
	for process, id := range open {
		events = append(events, porcupine.Event{ClientId: process, Kind: porcupine.ReturnEvent, Value: output{unknown: true}, Id: id})
	}
	kept := events[:0]
	for _, event := range events {
		if !dropped[event.Id] {
			kept = append(kept, event)
		}
	}
	return kept
}

func readOperations(path string) []porcupine.Operation {
	file, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	var operations []porcupine.Operation
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		var row struct {
			Process      int
			Op           string
			In, Out      *int
			Call, Return int64
		}
		if err := json.Unmarshal(scanner.Bytes(), &row); err != nil {
			log.Fatal(err)
		}
		in, out := input{op: row.Op}, output{value: initial}
		if row.In != nil {
			in.new = *row.In
		}
		if row.Out != nil {
			out.value = *row.Out
		}
		operations = append(operations, porcupine.Operation{
			ClientId: row.Process, Input: in, Call: row.Call, Output: out, Return: row.Return,
		})
	}
	if err := scanner.Err(); err != nil {
		log.Fatal(err)
	}
	return operations
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return n
}
