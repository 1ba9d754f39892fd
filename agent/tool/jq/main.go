package jq

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/sandbox"
)

// Main is the child's program: it limits its process, reads a query from stdin, and writes the answer to stdout.
func Main() error {
	input := bufio.NewReader(os.Stdin)
	head, err := input.ReadBytes('\n')
	var q request
	if err == nil {
		err = json.Unmarshal(head, &q)
	}
	if err != nil {
		return fmt.Errorf("this command is run by the server alone: %w", err)
	}
	sandbox.LimitStrictly(q.MemoryBytes, q.CPU)
	if err := sandbox.Enter(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(q.answer(input))
}

// answer runs the expression over the text behind the query.
func (q request) answer(stdin io.Reader) Answer {
	parsed, err := gojq.Parse(q.Expression)
	if err != nil {
		return Answer{Wrong: q.unparsed(err)}
	}
	code, err := gojq.Compile(parsed)
	if err != nil {
		return Answer{Wrong: fmt.Sprintf("The jq expression cannot be run: %v.", err)}
	}
	input, values, err := read(stdin)
	if err != nil {
		return Answer{Wrong: fmt.Sprintf("The text is not JSON (%v), so that jq cannot read it. Use pattern in place of jq.",
			err)}
	}
	out := Answer{Results: []string{}, Values: values}
	results := code.Run(input)
	for room := q.MaxBytes; ; {
		result, ok := results.Next()
		if !ok {
			return out
		}
		if err, failed := result.(error); failed {
			return q.failed(out, err)
		}
		if q.Skip > 0 {
			q.Skip--
			continue
		}
		if len(out.Results) == q.MaxResults || room <= 0 {
			out.More = true
			return out
		}
		raw, err := gojq.Marshal(result)
		if err != nil {
			return Answer{Wrong: fmt.Sprintf("The jq expression has a result that is not JSON: %v.", err)}
		}
		if len(raw) > room && len(out.Results) > 0 { // it begins the next page
			out.More = true
			return out
		}
		shown := db.Beginning(string(raw), room)
		if len(shown) < len(raw) {
			out.CutFrom = len(raw)
		}
		out.Results = append(out.Results, shown)
		room -= len(raw)
	}
}

// unparsed says where an expression is wrong.
func (q request) unparsed(err error) string {
	at := ""
	if wrong, ok := errors.AsType[*gojq.ParseError](err); ok {
		at = fmt.Sprintf(" after %q", tail(db.Beginning(q.Expression, wrong.Offset)))
	}
	return fmt.Sprintf("The jq expression is wrong%s: %v. Names with other characters than letters, digits and _ are "+
		`written as .["a-b"]; texts are in double quotes.`, at, err)
}

// tail returns the last characters of a text.
func tail(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		return "…" + string(r[len(r)-most:])
	}
	return text
}

// failed returns the answer for an expression that failed after some results.
func (q request) failed(out Answer, err error) Answer {
	if halt, ok := errors.AsType[*gojq.HaltError](err); ok && halt.Value() == nil {
		return out // the expression itself ended
	}
	after := ""
	if n := len(out.Results); n > 0 {
		after = fmt.Sprintf(" after %d results", n)
	}
	return Answer{Wrong: fmt.Sprintf("The jq expression failed%s: %s. To see what the text has, ask for keys, type, or "+
		".[0]; ? behind an access skips what does not fit.", after, strings.TrimSuffix(db.Beginning(err.Error(), 500), "."))}
}

// read reads one or several JSON values and counts them. Several values become one list.
func read(stdin io.Reader) (input any, values int, err error) {
	d := json.NewDecoder(stdin)
	d.UseNumber()
	var all []any
	for {
		var value any
		if err := d.Decode(&value); errors.Is(err, io.EOF) && len(all) > 0 {
			break
		} else if errors.Is(err, io.EOF) {
			return nil, 0, errors.New("it is empty")
		} else if err != nil {
			return nil, 0, fmt.Errorf("near byte %d: %w", d.InputOffset(), err)
		}
		all = append(all, value)
	}
	if len(all) == 1 {
		return all[0], 1, nil
	}
	return all, len(all), nil
}
