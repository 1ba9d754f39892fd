package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
)

// refuses reports whether an error refuses the document. If what is broken is left out, it notes the error instead.
func (d document) refuses(err error) bool {
	if err == nil {
		return false
	}
	broken, ok := errors.AsType[*Error](err)
	if !ok || d.left == nil {
		return true
	}
	*d.left = append(*d.left, broken)
	return false
}

// lines reads a document with a value per line, without the lines that are no JSON. Unless fewer lines are broken than
// not, the document is no such document, and lines returns first.
func (d document) lines(first error) (all []value, err error) {
	begin := 0
	var broken []error
	for line := range bytes.Lines(d.data) {
		at := begin + len(line) - len(bytes.TrimLeft(line, " \t\r\n"))
		begin += len(line)
		text := bytes.TrimSpace(line)
		switch {
		case len(text) == 0:
		case json.Valid(text):
			all = append(all, value{raw: text, at: at})
		default:
			err := d.lineError(at, text)
			if err == nil {
				err = d.fail(at, "the line has more than one value")
			}
			broken = append(broken, err)
		}
	}
	if len(broken) >= len(all) {
		return nil, first
	}
	for _, err := range broken {
		if d.refuses(err) {
			return nil, err
		}
	}
	return all, nil
}

// lineError returns why the line at an offset begins with no JSON value; nil if it begins with one.
func (d document) lineError(at int, line []byte) error {
	_, err := document{name: d.name, data: d.data[:at+len(line)]}.next(at, json.NewDecoder(bytes.NewReader(line)))
	return err
}

// broken returns the error for the value behind all others. If each value has a line of its own, a value that ends too
// early is noticed only on a later line; broken then returns the error of its own line.
func (d document) broken(before []value, err error) error {
	begin := 0
	for _, v := range before {
		if bytes.ContainsRune(v.raw, '\n') {
			return err
		}
		begin = v.at + len(v.raw)
	}
	begin += len(d.data[begin:]) - len(bytes.TrimLeft(d.data[begin:], " \t\r\n"))
	line, rest, _ := bytes.Cut(d.data[begin:], []byte("\n"))
	next, _, _ := bytes.Cut(bytes.TrimLeft(rest, " \t\r\n"), []byte("\n"))
	if len(before) == 0 && !isObjectAlone(next) {
		return err
	}
	if lineErr := d.lineError(begin, line); lineErr != nil {
		return lineErr
	}
	return err
}

// isObjectAlone reports whether a line is a whole JSON object.
func isObjectAlone(line []byte) bool { return bytes.HasPrefix(line, []byte("{")) && json.Valid(line) }
