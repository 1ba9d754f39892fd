package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
)

// Warnings are sentences about parts of a request that had no effect. At most maxWarnings are about unknown names.
type Warnings []string

const (
	maxWarnings  = 20
	maxNameBytes = 100 // bytes of a field's name in a warning

	// WarningsHeader holds the warnings, as a JSON list, of an answer that is no object.
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

// addUnknown warns of a field or a parameter with a name that is not among the known ones. It looks for the nearest
// name only if the warning will be shown: a body may have a million unknown fields.
func (w *Warnings) addUnknown(kind, place string, known []string) {
	sentence := fmt.Sprintf("Loci does not know the %s %q", kind, shorten(place))
	if name := place[strings.LastIndexByte(place, '.')+1:]; len(*w) < maxWarnings-1 && len(name) <= maxNameBytes {
		if name = db.Nearest(name, known); name != "" {
			sentence += "; did you mean " + name + "?"
		}
	}
	w.add(sentence)
}

func shorten(name string) string {
	if len(name) <= maxNameBytes {
		return name
	}
	return string(bytes.ToValidUTF8([]byte(name[:maxNameBytes]), nil)) + "…"
}

// inform adds the warnings to an answer: an object gets the field warnings, any other answer the header WarningsHeader.
// An Object also gets the header, because it is sent unchanged, as for a request to a provider.
func (w Warnings) inform(answer any, setHeader func(name, value string)) (any, error) {
	if len(w) == 0 {
		return answer, nil
	}
	if _, unchanged := answer.(Object); unchanged {
		setHeader(WarningsHeader, w.ascii())
		return answer, nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // as in the answer itself
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

// In returns an object with the warnings in it, for an answer with a header that may be sent before the body is known.
func (w Warnings) In(answer any) (any, error) { return w.inform(answer, func(string, string) {}) }

// ascii returns the warnings as a JSON list in the characters that a header can hold.
func (w Warnings) ascii() string {
	var b strings.Builder
	text, _ := json.Marshal([]string(w)) // texts can always be marshaled
	for _, r := range string(text) {
		if r < 0x7f {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, min(r, 0xfffd))
		}
	}
	return b.String()
}

// InHeader sets the header WarningsHeader on the answer of a streamed operation, if there are warnings.
func (w Warnings) InHeader(c echo.Context) {
	if len(w) > 0 {
		c.Response().Header().Set(WarningsHeader, w.ascii())
	}
}

// warn adds a request's warnings to its answer.
func warn(ctx huma.Context, _ string, answer any) (any, error) {
	return WarningsOf(ctx.Context()).inform(answer, ctx.SetHeader)
}

// Answer sends the answer of a streamed operation, with a status and the request's warnings.
func (w Warnings) Answer(c echo.Context, status int, answer any) error {
	informed, err := w.inform(answer, c.Response().Header().Set)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Content-Type", JSON)
	c.Response().WriteHeader(status)
	encoder := json.NewEncoder(c.Response())
	encoder.SetEscapeHTML(false) // as other operations do
	return encoder.Encode(informed)
}

// WarningsOf returns the warnings that a request has so far.
func WarningsOf(ctx context.Context) Warnings {
	if w, ok := ctx.Value(keyWarnings).(*Warnings); ok {
		return *w
	}
	return nil
}

// Warn adds sentences to a request's warnings. maxWarnings does not limit them: the caller does.
func Warn(ctx context.Context, sentences ...string) {
	if w, ok := ctx.Value(keyWarnings).(*Warnings); ok {
		*w = append(*w, sentences...)
	}
}
