package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
)

// progressLine shows the progress of a command: on a terminal in one line that changes, elsewhere in a new line now and
// then.
type progressLine struct {
	to       io.Writer
	terminal bool
	every    time.Duration
	shown    time.Time
}

// newProgressLine returns a progressLine that writes to errs.
func newProgressLine(errs io.Writer) *progressLine {
	errs = rawTerminal(errs)
	p := &progressLine{to: errs, every: 10 * time.Second, shown: time.Now()}
	if f, ok := errs.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		p.terminal, p.every, p.shown = true, 100*time.Millisecond, time.Time{}
	}
	return p
}

// show shows a state, unless it showed one a moment ago.
func (p *progressLine) show(state string) {
	if time.Since(p.shown) < p.every {
		return
	}
	p.shown = time.Now()
	if p.terminal {
		fmt.Fprintf(p.to, "\r\x1b[K%.100s", printable(state))
	} else {
		fmt.Fprintln(p.to, state)
	}
}

// end removes the line from a terminal.
func (p *progressLine) end() {
	if p.terminal {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}
