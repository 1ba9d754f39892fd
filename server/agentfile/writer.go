package agentfile

import (
	"bufio"
	"io"
	"iter"
	"strings"
)

// writer writes a JSON object, with lists that come item by item. After an error it writes nothing more, and close
// returns the error.
type writer struct {
	out       *bufio.Writer
	separator string
	err       error
}

func newWriter(out io.Writer) *writer {
	return &writer{out: bufio.NewWriterSize(out, 1<<16), separator: "{\n"}
}

func (w *writer) text(s string) {
	if w.err == nil {
		_, w.err = w.out.WriteString(s)
	}
}

// name writes the name of the next field.
func (w *writer) name(name string) {
	w.text(w.separator + `"` + name + `":`)
	w.separator = ",\n"
}

func (w *writer) value(v any) {
	if w.err != nil {
		return
	}
	raw, err := encode(v)
	if err != nil {
		w.err = err
		return
	}
	_, w.err = w.out.Write(raw)
}

func (w *writer) field(name string, v any) {
	w.name(name)
	w.value(v)
}

// object writes an object without its closing brace, so that more fields can follow.
func (w *writer) object(v any) {
	raw, err := encode(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.text(strings.TrimSuffix(string(raw), "}"))
	w.separator = ",\n"
}

// list writes a field with a list.
func list[T any](w *writer, name string, items iter.Seq2[T, error]) {
	w.name(name)
	w.text("[")
	separator := ""
	for item, err := range items {
		if err != nil && w.err == nil {
			w.err = err
		}
		if w.err != nil {
			return
		}
		w.text(separator)
		w.value(item)
		separator = ",\n"
	}
	w.text("]")
}

// close writes the closing brace, and returns the first error.
func (w *writer) close() error {
	w.text("\n}\n")
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}

// each yields the items of a slice, with nil errors.
func each[T any](items []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// ofEach yields the items of each owner, one owner after the other.
func ofEach[O, T any](owners []O, items func(O) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, owner := range owners {
			for item, err := range items(owner) {
				if !yield(item, err) || err != nil {
					return
				}
			}
		}
	}
}
