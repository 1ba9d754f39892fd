// Package jq runs jq expressions over JSON in child processes: the program itself, started again for one expression,
// with bounds of time, memory and output. An expression can use up any of these in a single step that nothing can
// interrupt.
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

	maxAtOnce = 4 // children per server
	reserve   = 2 // children that one organization leaves to the others
)

// Runner runs expressions in children.
type Runner struct {
	Command     []string      // a program that calls Main
	Patience    time.Duration // 0 means DefaultPatience
	CPU         time.Duration // 0 means DefaultCPU; whole seconds
	MemoryBytes int64         // 0 means DefaultMemoryBytes

	slots *db.Shares
}

// New returns a runner that starts this command as its children. The command must call Main.
func New(command ...string) *Runner {
	return &Runner{Command: command, slots: db.NewShares(maxAtOnce, reserve)}
}

// Query is an expression, and says which of its results to return.
type Query struct {
	Expression string
	Text       string `json:"-"` // a JSON value, or several that become one list
	Skip       int    // results to skip
	MaxResults int
	MaxBytes   int // for all results; the last one may be cut
}

// Answer is what an expression returns.
type Answer struct {
	Results []string `json:"results"`  // each is JSON on one line
	CutFrom int      `json:"cut_from"` // bytes of the last result if it is cut; otherwise 0
	More    bool     `json:"more"`     // there are more results
	Values  int      `json:"values"`   // values in the text; above 1 they became one list

	Wrong string `json:"wrong,omitempty"` // what is wrong with the expression or the text
}

// request is what a child reads before the text.
type request struct {
	Query
	CPU         time.Duration
	MemoryBytes int64
}

// Run runs an expression for an organization. ErrInvalid says what is wrong with the expression or the text, or which
// bound it reached.
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
	// A byte of a result takes at most six bytes in JSON.
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

// plain returns a text as one line without control characters, because an expression may copy what it reads into its
// own errors.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, text)
}
