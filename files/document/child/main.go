package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"

	"github.com/loci-memory/loci/files/document"
)

// Exit codes of a child without an answer: by an error, or beyond a bound. Go's runtime exits with 2.
const (
	exitFailed = 1
	ExitMemory = 70
	ExitTime   = 71
)

// request is the argument of a child.
type request struct {
	MediaType   string        `json:"media_type"`
	CacheDir    string        `json:"cache_dir,omitempty"`
	TempDir     string        `json:"temp_dir,omitempty"`
	PDFToText   string        `json:"pdftotext,omitempty"`
	MemoryBytes int64         `json:"memory_bytes"`
	CPU         time.Duration `json:"cpu"`
}

// String returns the request as Main's argument.
func (q request) String() string {
	raw, _ := json.Marshal(q) // strings and numbers
	return string(raw)
}

// Main is the program of a child: it bounds the process, reads the document on stdin, and writes its answer to stdout.
func Main(argument string) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM) // the parent decides when it ends
	var q request
	if err := json.Unmarshal([]byte(argument), &q); err != nil {
		return fmt.Errorf("this command is run by the server alone: %w", err)
	}
	Limit(q.MemoryBytes, q.CPU)
	if err := q.confine(); err != nil {
		return err
	}
	info, err := os.Stdin.Stat()
	if err != nil {
		return fmt.Errorf("find the document: %w", err)
	}
	reader := document.Readers{CacheDir: q.CacheDir, PDFToText: q.PDFToText}
	in := document.Input{MediaType: q.MediaType, SizeBytes: info.Size(), Body: os.Stdin}
	text, err := reader.Read(context.Background(), in)
	h := header{Charset: text.Charset, Pages: text.Pages, TextBytes: len(text.Text)}
	if unreadable, ok := errors.AsType[*document.UnreadableError](err); ok {
		h = header{Unreadable: unreadable.Reason}
	} else if err != nil {
		h = header{Failed: err.Error()}
	}
	if err := json.NewEncoder(os.Stdout).Encode(h); err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(text.Text)
	return err
}

// Limit limits the memory and the processor time of this process. Beyond them it exits with ExitMemory or ExitTime. The
// system's limits, which end what the process cannot, are wider.
func Limit(memoryBytes int64, cpu time.Duration) {
	limitProcess(memoryBytes+memoryBytes/2, cpu)
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGXCPU)
	go func() {
		<-over
		os.Exit(ExitTime)
	}()
	debug.SetMemoryLimit(memoryBytes / 4 * 3)
	go watch(uint64(memoryBytes)) //nolint:gosec // positive
}

// watchEvery is how often a child measures its memory.
const watchEvery = 20 * time.Millisecond

// watch ends the process when it holds more memory than most.
func watch(most uint64) {
	memory := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(watchEvery) {
		metrics.Read(memory)
		if held := memory[0].Value.Uint64() - memory[1].Value.Uint64(); held > most {
			fmt.Fprintf(os.Stderr, "out of memory: %d of %d bytes\n", held, most)
			os.Exit(ExitMemory)
		}
	}
}
