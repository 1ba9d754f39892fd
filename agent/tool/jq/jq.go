// Package jq runs expressions of jq over JSON in child processes: the same program, run again for one expression,
// within bounds of time, memory, and output. An expression can take any of them without bound, in one step that nothing
// can interrupt.
//
// Its files, in order: jq.go runs a child for an expression; main.go is the program of the child.
package jq

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/sandbox"
)

// Bounds of running one expression.
const (
	MaxExpressionBytes = 4_000
	DefaultPatience    = 10 * time.Second // of wall clock
	DefaultCPU         = 5 * time.Second  // of processors
	DefaultMemoryBytes = 512 << 20

	maxAtOnce = 4 // children of a server
	reserve   = 2 // of them, for other organizations than one
)

// Runner runs expressions in children.
type Runner struct {
	Command     []string      // a program that calls Main
	Patience    time.Duration // 0 is DefaultPatience
	CPU         time.Duration // 0 is DefaultCPU; whole seconds
	MemoryBytes int64         // 0 is DefaultMemoryBytes

	slots *db.Shares
}

// New returns a runner whose children are a program that calls Main.
func New(command ...string) *Runner {
	return &Runner{Command: command, slots: db.NewShares(maxAtOnce, reserve)}
}

// Query is an expression, and which of its results to return.
type Query struct {
	Expression string
	Text       string `json:"-"` // JSON, or several values of it, which are then one list
	Skip       int    // results
	MaxResults int
	MaxBytes   int // of all results; the last one may be cut
}

// Answer is what an expression yields.
type Answer struct {
	Results []string `json:"results"`  // each as JSON on one line
	CutFrom int      `json:"cut_from"` // bytes of the last result if that is cut, else 0
	More    bool     `json:"more"`     // there is another result
	Values  int      `json:"values"`   // of the text: above 1, they are one list

	Wrong string `json:"wrong,omitempty"` // what is wrong with the expression or the text
}

// request is what a child reads before the text.
type request struct {
	Query
	CPU         time.Duration
	MemoryBytes int64
}

// Run runs an expression for an organization. ErrInvalid says what is wrong with the expression or the text, or which
// bound it reaches.
func (r *Runner) Run(ctx context.Context, org db.Org, q Query) (out Answer, err error) {
	if len(q.Expression) > MaxExpressionBytes {
		return out, db.Invalid("The jq expression has %d bytes; it may have at most %d.", len(q.Expression),
			MaxExpressionBytes)
	}
	if err := r.slots.Take(ctx, org, 1); err != nil {
		return out, err
	}
	defer r.slots.Give(org, 1)
	head, err := json.Marshal(request{Query: q, CPU: cmp.Or(r.CPU, DefaultCPU),
		MemoryBytes: cmp.Or(r.MemoryBytes, DefaultMemoryBytes)})
	if err != nil {
		return out, err
	}
	// A byte of a result takes at most six in JSON.
	answer := &document.LimitedBuffer{LeftBytes: 64<<10 + 6*q.MaxBytes + 8*q.MaxResults}
	stderr, err := sandbox.Child{Command: r.Command, Stdin: bytes.NewReader(append(append(head, '\n'), q.Text...)),
		Stdout: answer, Patience: cmp.Or(r.Patience, DefaultPatience)}.Run(ctx)
	if err == nil {
		err = json.Unmarshal(answer.Held.Bytes(), &out)
	}
	if err != nil {
		return out, r.verdict(err, stderr)
	}
	if out.Wrong != "" {
		return out, db.Invalid("%s", plain(out.Wrong))
	}
	return out, nil
}

// verdict returns why a child gave no answer.
func (r *Runner) verdict(err error, stderr string) error {
	switch {
	case errors.Is(err, sandbox.ErrPatience), errors.Is(err, sandbox.ErrCPU):
		return db.Invalid("The jq expression took too long and was stopped. Select less before you compute, for example " +
			".[0:100], and bound generators with limit or first.")
	case errors.Is(err, sandbox.ErrMemory):
		return db.Invalid("The jq expression needed more than %d MiB of memory and was stopped. Select less before you "+
			"compute, for example .[0:100], and do not build long strings or lists.",
			cmp.Or(r.MemoryBytes, DefaultMemoryBytes)>>20)
	}
	return fmt.Errorf("run jq: %w: %s", err, stderr)
}

// plain returns a text as one line without control characters: an expression may make its own errors of what it reads.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, text)
}
