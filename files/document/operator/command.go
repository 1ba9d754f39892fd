package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loci-memory/loci/db/spool"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/sandbox"
)

// Limits of one run of a program.
const (
	DefaultMemoryBytes = 2 << 30
	DefaultCPU         = 120 * time.Second // of all its processes
	DefaultPatience    = 10 * time.Minute  // wall-clock time, on a machine that may be busy with other work

	atOnce = 2 // programs of a server that run at the same time
)

// What an argument of a command may contain.
const (
	inputMark  = "{input}"  // the path of the file to read; without it, the file is the standard input
	outMark    = "{outdir}" // the path of a folder for one file, the output; without it, the standard output is the output
	formatMark = "{format}" // the extension of the wanted format
)

// Command is a program of the operator, with its arguments and limits.
type Command struct {
	Setting string   // the setting that names it
	Line    []string // the absolute path of the program, and its arguments
	Host    *sandbox.Host

	MemoryBytes int64         // 0 means DefaultMemoryBytes
	CPU         time.Duration // 0 means DefaultCPU
	Patience    time.Duration // 0 means DefaultPatience

	Slots chan struct{} // shared by the commands of a server; see NewSlots
}

// NewSlots returns what bounds how many programs of a server run at the same time.
func NewSlots() chan struct{} { return make(chan struct{}, atOnce) }

// Name returns the name of the program.
func (c *Command) Name() string { return filepath.Base(c.Line[0]) }

// Parse splits the value of a setting into a program and its arguments, as a shell does: at blanks outside of quotation
// marks. The program must exist.
func Parse(value string) ([]string, error) {
	line, err := split(value)
	if err != nil {
		return nil, err
	}
	if len(line) == 0 {
		return nil, errors.New("it names no program")
	}
	path, err := exec.LookPath(line[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("there is no program %q: %w", line[0], err)
	}
	line[0] = path
	return line, nil
}

// split splits a line at blanks. Quotation marks, single or double, keep blanks; a backslash keeps the next character,
// except within single ones.
func split(line string) (words []string, err error) {
	var word strings.Builder
	quote, escaped, inWord := rune(0), false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quotation mark or a backslash in it has no second part")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// task is a file for a program.
type task struct {
	extension string
	body      io.Reader
	format    string // wanted extension; empty: text
	most      int    // bytes of output
}

// failedError says why a program did not read a file, in a clause about the program.
type failedError struct{ reason string }

func (e *failedError) Error() string { return e.reason }

func failed(format string, args ...any) *failedError {
	return &failedError{fmt.Sprintf(format, args...)}
}

// missingError says that a program cannot be run at all.
type missingError struct{ failedError }

// run runs the program for a file, and calls use with its output. *failedError if the program is at fault, or the file;
// *missingError if no file can be read; document.ErrCutShort and document.ErrStuck if another attempt may succeed.
func (c *Command) run(ctx context.Context, t task, use func(output *os.File) error) error {
	select {
	case c.Slots <- struct{}{}:
		defer func() { <-c.Slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	scratch, err := c.Host.Scratch()
	if err != nil {
		return fmt.Errorf("make a folder for %s: %w", c.Name(), err)
	}
	defer scratch.Close()
	p, fromDir, err := c.prepare(scratch, t)
	if err != nil {
		return fmt.Errorf("give %s its file: %w", c.Name(), err)
	}
	output := &document.LimitedBuffer{LeftBytes: t.most}
	p.Stdout = output
	if fromDir {
		p.Stdout = io.Discard
	}
	stderr, err := c.Host.Run(ctx, p)
	if err := c.verdict(ctx, err, output.LeftBytes < 0, stderr); err != nil {
		return err
	}
	if fromDir {
		return useFile(scratch, t.format, use)
	}
	printed := &spool.Spool{Dir: c.Host.TempDir}
	defer printed.Close()
	if _, err := output.Held.WriteTo(printed); err != nil {
		return fmt.Errorf("spool the output of %s: %w", c.Name(), err)
	}
	file, err := printed.File()
	if err != nil {
		return fmt.Errorf("spool the output of %s: %w", c.Name(), err)
	}
	return use(file)
}

// useFile calls use with the file that a program wrote.
func useFile(scratch *sandbox.Scratch, format string, use func(output *os.File) error) error {
	name, err := theOutput(scratch, format)
	if err != nil {
		return err
	}
	file, err := scratch.Open(name)
	if err != nil {
		return failed("its output cannot be read: %v", err)
	}
	defer file.Close()
	return use(file)
}

// prepare puts the file and the folder for the output into the scratch folder, and returns the run.
func (c *Command) prepare(scratch *sandbox.Scratch, t task) (p sandbox.Program, fromDir bool, err error) {
	has := func(mark string) bool {
		return slices.ContainsFunc(c.Line, func(word string) bool { return strings.Contains(word, mark) })
	}
	p = sandbox.Program{Scratch: scratch, MemoryBytes: or(c.MemoryBytes, DefaultMemoryBytes),
		CPU: or(c.CPU, DefaultCPU), Patience: or(c.Patience, DefaultPatience)}
	input, out := "", ""
	if has(inputMark) {
		input, err = scratch.Add("input."+t.extension, t.body)
	} else {
		p.Stdin = t.body
	}
	if err == nil && has(outMark) {
		fromDir = true
		out, err = scratch.AddDir(outDir)
	}
	fill := strings.NewReplacer(inputMark, input, outMark, out, formatMark, t.format)
	p.Command = append(p.Command, c.Line[0])
	for _, word := range c.Line[1:] {
		p.Command = append(p.Command, fill.Replace(word))
	}
	return p, fromDir, err
}

const outDir = "out"

func or[N int64 | time.Duration](value, usual N) N {
	if value == 0 {
		return usual
	}
	return value
}

// theOutput returns the name of the file that a program wrote. A program may write others beside the one in the wanted
// format.
func theOutput(scratch *sandbox.Scratch, format string) (string, error) {
	names, err := scratch.Names(outDir)
	if err != nil {
		return "", failed("its output cannot be read: %v", err)
	}
	if len(names) > 1 && format != "" {
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, "."+format) })
	}
	switch len(names) {
	case 0:
		return "", failed("it wrote no file")
	case 1:
		return outDir + "/" + names[0], nil
	}
	return "", failed("it wrote %d files", len(names))
}

// verdict returns why a run gave no output.
func (c *Command) verdict(ctx context.Context, err error, tooLong bool, stderr string) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case tooLong:
		return failed("it printed too much")
	case err == nil:
		return nil
	case errors.Is(err, sandbox.ErrConfined), errors.Is(err, sandbox.ErrStart):
		return &missingError{*failed("it does not start: %s", lastLine(stderr))}
	case errors.Is(err, sandbox.ErrKilled):
		return fmt.Errorf("%w: %w", document.ErrCutShort, err)
	case errors.Is(err, sandbox.ErrPatience):
		return fmt.Errorf("%w: %s", document.ErrStuck, c.Name())
	case errors.Is(err, sandbox.ErrMemory):
		return failed("it needed more than %d MiB of memory", or(c.MemoryBytes, DefaultMemoryBytes)>>20)
	case errors.Is(err, sandbox.ErrCPU):
		return failed("it took more than %s of processor time", or(c.CPU, DefaultCPU))
	case errors.Is(err, sandbox.ErrScratch):
		return failed("it wrote too much")
	}
	if said := lastLine(stderr); said != "" {
		return failed("it ended with %v: %s", err, said)
	}
	return failed("it ended with %v", err)
}

// lastLine returns the last line that a program wrote to stderr, as far as it can be printed.
func lastLine(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, lines[len(lines)-1])
	const most = 200
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}

// text reads an output that must be text in UTF-8.
func text(output *os.File, most int64) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(output, most+1))
	switch {
	case err != nil:
		return "", err
	case int64(len(raw)) > most:
		return "", failed("it wrote too much")
	case !utf8.Valid(raw):
		return "", failed("what it wrote is no text in UTF-8")
	}
	return strings.ReplaceAll(string(raw), "\x00", ""), nil
}
