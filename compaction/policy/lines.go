package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
)

// LineRequest asks a model for a line to show instead of a result.
type LineRequest struct {
	Hash      string // hash of Prompt; results with the same prompt share a line
	Prompt    string
	MaxTokens int
}

// maxLineSource bounds the bytes of a result that a model reads to write a line about it.
const maxLineSource = 20_000

// Line is a model's line about a result.
type Line struct {
	Text    string // empty if the model failed: rules write the line
	Unasked bool   // the model was not asked: the result stays until the next prompt
}

// linesOf returns a line for each result; an empty one leaves the result unchanged.
func linesOf(v clip.View, results []result, maxTokens int, write func([]LineRequest) []Line) []string {
	lines := make([]string, len(results))
	if write == nil {
		for i, r := range results {
			lines[i] = lineOf(r, maxTokens)
		}
		return lines
	}
	requests := make([]LineRequest, len(results))
	for i, r := range results {
		requests[i] = lineRequest(v, r, maxTokens)
	}
	for i, line := range write(requests) {
		text := oneLine(line.Text, charsPerToken*maxTokens)
		switch {
		case line.Unasked:
		case text == "":
			lines[i] = lineOf(results[i], maxTokens)
		default:
			lines[i] = "compacted: " + text
		}
	}
	return lines
}

func lineRequest(v clip.View, r result, maxTokens int) LineRequest {
	input := ""
	if r.call != nil {
		input = db.Beginning(r.call.Input, maxLineSource/4)
	}
	prompt := fmt.Sprintf("Describe this result of a tool in ONE line of at most %d tokens: the tool's name, what it "+
		"returned, and the values, names, and errors that later work may need. Answer with the line only.\n\n"+
		"Tool: %s\nArguments: %s\nResult:\n%s", maxTokens, r.toolName(), input,
		db.Beginning(r.shown(v).Text, maxLineSource))
	sum := sha256.Sum256([]byte(prompt))
	return LineRequest{Hash: hex.EncodeToString(sum[:]), Prompt: prompt, MaxTokens: maxTokens}
}

// LineCache keeps lines by the hashes of their requests, so that no result is described twice.
type LineCache interface {
	Line(hash string) (line string, ok bool)
	Keep(hash, line string)
}

// LineWriter writes lines with a model, some at a time.
type LineWriter struct {
	Ask      func(LineRequest) (string, error)
	Parallel int  // requests at a time; at least 1
	Most     *int // requests of all calls of Write that are left; nil: no bound
	Cache    LineCache

	// Try asks for the first line alone. If that fails, the model is asked for no other, and rules write all lines.
	Try bool
}

// Write returns a line for each request.
func (w LineWriter) Write(requests []LineRequest) []Line {
	lines := make([]Line, len(requests))
	indexes := map[string][]int{} // hash → indexes of the requests with it
	var ask []int
	for i, r := range requests {
		if line, ok := w.cached(r.Hash); ok {
			lines[i].Text = line
			continue
		}
		lines[i].Unasked = true
		if len(indexes[r.Hash]) == 0 && (w.Most == nil || *w.Most > 0) {
			if ask = append(ask, i); w.Most != nil {
				*w.Most--
			}
		}
		indexes[r.Hash] = append(indexes[r.Hash], i)
	}
	one := func(i int) (failed bool) {
		line, err := w.Ask(requests[i])
		if err != nil {
			line = ""
		}
		line = strings.TrimSpace(line)
		for _, same := range indexes[requests[i].Hash] {
			lines[same] = Line{Text: line} // no other goroutine writes these
		}
		if w.Cache != nil && line != "" {
			w.Cache.Keep(requests[i].Hash, line)
		}
		return err != nil
	}
	if w.Try && len(ask) > 0 {
		if one(ask[0]) {
			for i := range lines {
				lines[i].Unasked = false
			}
			return lines
		}
		ask = ask[1:]
	}
	slots := make(chan struct{}, max(w.Parallel, 1))
	var group sync.WaitGroup
	for _, i := range ask {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			one(i)
		})
	}
	group.Wait()
	return lines
}

func (w LineWriter) cached(hash string) (string, bool) {
	if w.Cache == nil {
		return "", false
	}
	return w.Cache.Line(hash)
}

// counted returns the size of a result in words.
func counted(r result) string {
	if r.p.Clip != nil {
		return fmt.Sprintf("%d characters", r.p.Clip.Chars)
	}
	lines := "1 line"
	if n := 1 + strings.Count(strings.TrimRight(r.p.Text, "\n"), "\n"); n > 1 {
		lines = fmt.Sprintf("%d lines", n)
	}
	return fmt.Sprintf("%s, %d characters", lines, r.chars())
}

// firstLine returns the first line of a text that is not blank.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			return line
		}
	}
	return ""
}

// importantLine returns the last line about an error near a text's end, or else the last line that sums up. It never
// returns the first line.
func importantLine(text string) string {
	end := text[max(len(text)-tailBytes, len(firstLine(text))):]
	failure, total := "", ""
	for l := range strings.Lines(end) {
		switch {
		case summary.SaysError(l):
			failure = l
		case sumsUp(strings.ToLower(l)):
			total = l
		}
	}
	return cmp.Or(failure, total)
}

// terminalCode matches an escape sequence of a terminal, also one that the end of the text cuts.
var terminalCode = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]?)?`)

// oneLine returns a text without line ends and terminal codes, cut to chars characters.
func oneLine(text string, chars int) string {
	text = strings.ToValidUTF8(db.Beginning(text, 8*utf8.UTFMax*chars), "")
	text = terminalCode.ReplaceAllString(text, "")
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= chars {
		return text
	}
	return string([]rune(text)[:max(chars-1, 0)]) + "…"
}
