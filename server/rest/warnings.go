package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
	"github.com/pmezard/go-difflib/difflib"
)

// Warnings are sentences about what a request asks for and does not get. At most maxWarnings are of unknown names.
type Warnings []string

const (
	maxWarnings  = 20
	maxNameBytes = 100 // of a field's name that is shown

	// WarningsHeader has the warnings, as a JSON list, of an answer that is no object.
	WarningsHeader = "X-Loci-Warnings"
)

func (w *Warnings) add(warning string) {
	switch {
	case len(*w) < maxWarnings-1:
		*w = append(*w, warning)
	case len(*w) == maxWarnings-1:
		*w = append(*w, "Loci does not know other names of the request either")
	}
}

// addUnknown warns of a field or a parameter whose name is not among the known ones. Only a warning that is shown looks
// for the nearest name: a body may have a million unknown fields.
func (w *Warnings) addUnknown(kind, at string, known []string) {
	sentence := fmt.Sprintf("Loci does not know the %s %q", kind, shorten(at))
	if name := at[strings.LastIndexByte(at, '.')+1:]; len(*w) < maxWarnings-1 && len(name) <= maxNameBytes {
		if name = nearest(name, known); name != "" {
			sentence += "; did you mean " + name + "?"
		}
	}
	w.add(sentence)
}

// nearest returns the known name that is most like another, empty if none is like it. Case does not matter.
func nearest(name string, known []string) (best string) {
	letters := func(s string) []string { return strings.Split(strings.ToLower(s), "") }
	most := 0.65
	for _, k := range slices.Sorted(slices.Values(known)) {
		if alike := difflib.NewMatcher(letters(name), letters(k)).Ratio(); alike > most {
			best, most = k, alike
		}
	}
	return best
}

func shorten(name string) string {
	if len(name) <= maxNameBytes {
		return name
	}
	return string(bytes.ToValidUTF8([]byte(name[:maxNameBytes]), nil)) + "…"
}

// inform returns the answer to a request with its warnings: an object gets the field warnings, and any other answer the
// header WarningsHeader. So does an Object, which is sent on as it is, such as a request to a provider.
func (w Warnings) inform(answer any, setHeader func(name, value string)) (any, error) {
	if len(w) == 0 {
		return answer, nil
	}
	if _, bare := answer.(Object); bare {
		setHeader(WarningsHeader, w.ascii())
		return answer, nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the answer's own bytes
	if err := encoder.Encode(answer); err != nil {
		return nil, err
	}
	object, ok := bytes.CutSuffix(bytes.TrimSpace(text.Bytes()), []byte("}"))
	if !ok {
		setHeader(WarningsHeader, w.ascii())
		return answer, nil
	}
	if len(object) > 1 {
		object = append(object, ',')
	}
	return json.RawMessage(fmt.Appendf(object, `"warnings":%s}`, w.ascii())), nil
}

// In returns an answer that is an object with the warnings in it, for one whose header may be sent before the answer is
// known.
func (w Warnings) In(answer any) (any, error) { return w.inform(answer, func(string, string) {}) }

// ascii returns the warnings as a JSON list that a header can have.
func (w Warnings) ascii() string {
	var b strings.Builder
	text, _ := json.Marshal([]string(w)) // texts can always be written
	for _, r := range string(text) {
		if r < 0x7f {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, min(r, 0xfffd))
		}
	}
	return b.String()
}

// InHeader gives the answer of a streamed operation the header WarningsHeader, if there are warnings.
func (w Warnings) InHeader(c echo.Context) {
	if len(w) > 0 {
		c.Response().Header().Set(WarningsHeader, w.ascii())
	}
}

// warn gives an answer the warnings of its request.
func warn(ctx huma.Context, _ string, answer any) (any, error) {
	return WarningsOf(ctx.Context()).inform(answer, ctx.SetHeader)
}

// Answer answers a streamed operation with a status, an answer and the warnings of its request.
func (w Warnings) Answer(c echo.Context, status int, answer any) error {
	informed, err := w.inform(answer, c.Response().Header().Set)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Content-Type", JSON)
	c.Response().WriteHeader(status)
	encoder := json.NewEncoder(c.Response())
	encoder.SetEscapeHTML(false) // the answer's own bytes, as those of other operations
	return encoder.Encode(informed)
}

// WarningsOf returns the warnings of a request so far.
func WarningsOf(ctx context.Context) Warnings {
	if w, ok := ctx.Value(keyWarnings).(*Warnings); ok {
		return *w
	}
	return nil
}

// Warn adds sentences to the warnings with which a request is answered, however many names of it are unknown. The
// caller bounds them.
func Warn(ctx context.Context, sentences ...string) {
	if w, ok := ctx.Value(keyWarnings).(*Warnings); ok {
		*w = append(*w, sentences...)
	}
}
