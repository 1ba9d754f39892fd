package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/archival"
)

// ManyPassages are passages to create at once.
type ManyPassages struct {
	Passages []NewPassage `json:"passages" doc:"1 to 10,000, all of them or none."`
}

const (
	pathBatch     = "/archives/:archive_id/passages/batch"
	batchPatience = 15 * time.Minute // for a batch to come and to be stored: one of long texts has millions of words
)

// passageBatches registers the route whose body and answer are read and written passage by passage, and describes it in the API's document.
func (s *Server) passageBatches(e *echo.Echo, a *surface) {
	const path = "/v1/archives/{archive_id}/passages/batch"
	schemas := a.OpenAPI().Components.Schemas
	form := passageForm{schemas, schemas.Schema(reflect.TypeFor[NewPassage](), true, "")}
	e.POST("/v1"+pathBatch, func(c echo.Context) error { return s.createArchivePassages(c, form) })
	a.OpenAPI().AddOperation(&huma.Operation{
		Method: http.MethodPost, Path: path, Summary: "Insert passages into an archive, all or none", OperationID: operationID(http.MethodPost, path),
		Tags:       []string{tagOf(path)},
		Parameters: []*huma.Param{{Name: "archive_id", In: "path", Required: true, Schema: idSchema("archive")}},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {Schema: schemas.Schema(reflect.TypeFor[ManyPassages](), true, "")}}},
		Responses: map[string]*huma.Response{
			"200": {Description: "What became of each passage, in their order.", Content: map[string]*huma.MediaType{
				"application/json": {Schema: schemas.Schema(reflect.TypeFor[[]ArchivalPassage](), true, "")}}},
			"default": a.problemResponse(),
		},
	})
}

// createArchivePassages stores a body of passages, of which one at a time is in memory.
func (s *Server) createArchivePassages(c echo.Context, form passageForm) error {
	id, err := pathID(c, "archive_id", "archive", archiveIDForm)
	if err != nil {
		return err
	}
	r := c.Request()
	ctx, cancel := context.WithTimeout(r.Context(), batchPatience)
	defer cancel()
	if _, err := s.Archival.Archive(ctx, orgOf(ctx), id); err != nil {
		return err
	}
	if r.ContentLength > maxCaptureBytes {
		return tooLarge(maxCaptureBytes)
	}
	body := &patient{http.MaxBytesReader(c.Response(), r.Body, maxCaptureBytes), http.NewResponseController(c.Response())}
	batch, err := s.Archival.InsertMany(ctx, orgOf(ctx), id, form.drafts(body))
	if err != nil {
		return err
	}
	defer batch.Close()
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	return writePassages(&patientWriter{c.Response(), http.NewResponseController(c.Response())}, batch)
}

// writePassages writes a batch as a list. An error is too late for a status: what was stored stays, and the answer breaks off.
func writePassages(to io.Writer, batch *archival.Batch) error {
	out := bufio.NewWriterSize(to, 1<<16)
	separator := "["
	for p, err := range batch.Inserted() {
		if err != nil {
			return err
		}
		shown, err := json.Marshal(ArchivalPassage{Passage: p.Passage, Duplicate: p.Duplicate})
		if err != nil {
			return err
		}
		_, _ = out.WriteString(separator) // Flush tells
		_, _ = out.Write(shown)
		separator = ","
	}
	_, _ = out.WriteString("]\n")
	return out.Flush()
}

// passageForm reads passages by the rules of the API's document.
type passageForm struct {
	schemas huma.Registry
	schema  *huma.Schema
}

// drafts yields the passages of a body as they come.
func (f passageForm) drafts(body io.Reader) iter.Seq2[archival.Draft, error] {
	return func(yield func(archival.Draft, error) bool) {
		wanted := true
		err := f.read(json.NewDecoder(body), func(d archival.Draft) bool {
			wanted = yield(d, nil)
			return wanted
		})
		if err != nil && wanted {
			yield(archival.Draft{}, bodyError(err))
		}
	}
}

// bodyError is what is wrong with a body that cannot be read to its end.
func bodyError(err error) error {
	_, own := errors.AsType[*problem](err)
	_, limit := errors.AsType[*http.MaxBytesError](err)
	_, syntax := errors.AsType[*json.SyntaxError](err)
	switch {
	case own || limit:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return malformed("body: unexpected end of JSON input")
	case syntax:
		return malformed("body: " + err.Error())
	}
	return malformed("The request's body broke off: " + err.Error())
}

// read hands the items of "passages" on, as long as they are wanted. Other properties are ignored.
func (f passageForm) read(in *json.Decoder, take func(archival.Draft) bool) error {
	missing := unprocessable("body", "expected required property passages to be present")
	open, err := in.Token()
	if errors.Is(err, io.EOF) {
		return missing
	}
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return unprocessable("body", "expected object")
	}
	found := false
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return err
		}
		if key != "passages" {
			var ignored json.RawMessage
			if err := in.Decode(&ignored); err != nil {
				return err
			}
			continue
		}
		if found {
			return unprocessable("body.passages", "expected to be there once")
		}
		found = true
		if more, err := f.items(in, take); err != nil || !more {
			return err
		}
	}
	if _, err := in.Token(); err != nil {
		return err
	}
	if !found {
		return missing
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return malformed("body: there is something after the end of the JSON object")
	}
	return nil
}

func (f passageForm) items(in *json.Decoder, take func(archival.Draft) bool) (more bool, err error) {
	if open, err := in.Token(); err != nil || open != json.Delim('[') {
		if err == nil {
			err = unprocessable("body.passages", "expected array")
		}
		return false, err
	}
	for i := 0; in.More(); i++ {
		var raw json.RawMessage
		if err := in.Decode(&raw); err != nil {
			return false, err
		}
		d, err := f.draft(i, raw)
		if err != nil || !take(d) {
			return false, err
		}
	}
	_, err = in.Token()
	return err == nil, err
}

// draft reads an item.
func (f passageForm) draft(i int, raw json.RawMessage) (archival.Draft, error) {
	at := fmt.Sprintf("body.passages[%d]", i)
	if depth(raw) > maxBodyDepth-2 {
		return archival.Draft{}, unprocessable(at, fmt.Sprintf("expected at most %d levels of nesting", maxBodyDepth))
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return archival.Draft{}, err
	}
	var broken huma.ValidateResult
	huma.Validate(f.schemas, f.schema, huma.NewPathBuffer([]byte(at), len(at)), huma.ModeWriteToServer, value, &broken)
	if len(broken.Errors) > 0 {
		var sentences []string
		for _, err := range broken.Errors {
			if detail, ok := errors.AsType[*huma.ErrorDetail](err); ok {
				sentences = append(sentences, violation(detail))
			}
		}
		return archival.Draft{}, newProblem(http.StatusUnprocessableEntity, strings.Join(sentences, "; "))
	}
	var p NewPassage
	if err := json.Unmarshal(raw, &p); err != nil {
		return archival.Draft{}, unprocessable(at, err.Error())
	}
	d, err := p.draft()
	if err != nil {
		err = fmt.Errorf("passages[%d].%w", i, err)
	}
	return d, err
}
