package server

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"reflect"
	"regexp"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

const (
	uploadOverhead = 1 << 20          // of a multipart body around its file, in bytes
	uploadPatience = 30 * time.Second // for the next piece of a body
	partFile       = "file"
)

// uploads registers the routes whose bodies are streamed, and describes them in the API's document.
func (s *Server) uploads(e *echo.Echo, a *surface) {
	for base, old := range map[string]bool{"/v1/folders": false, "/v1/sources": true} {
		e.POST(base+"/:folder_id/upload", s.upload)
		a.OpenAPI().AddOperation(uploadOperation(a, base+"/{folder_id}/upload", old))
	}
}

func uploadOperation(a *surface, path string, old bool) *huma.Operation {
	query := func(name, doc string, values ...any) *huma.Param {
		return &huma.Param{Name: name, In: "query", Description: doc, Schema: &huma.Schema{Type: huma.TypeString, Enum: values}}
	}
	parts := &huma.Schema{Type: huma.TypeObject, Required: []string{partFile},
		Properties: map[string]*huma.Schema{partFile: {Type: huma.TypeString, Format: "binary"}}}
	return &huma.Operation{
		Method: http.MethodPost, Path: path, Summary: "Upload a file to a folder", OperationID: operationID(http.MethodPost, path),
		Tags: []string{tagOf(path)}, Deprecated: old,
		Parameters: []*huma.Param{
			{Name: "folder_id", In: "path", Required: true, Schema: idSchema("source")},
			query("duplicate_handling", "What to do if the folder has a file of this name.", "suffix", "skip", "error", "replace"),
			query("name", "The name to store the file under, in place of its own."),
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: parts}}},
		Responses: map[string]*huma.Response{
			"200": {Description: "The file; its text follows.", Content: map[string]*huma.MediaType{
				"application/json": {Schema: a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[files.File](), true, "")}}},
			"default": a.problemResponse(),
		},
	}
}

// upload streams the part "file" of a multipart body into a folder. Nothing of it is kept before the store takes it.
func (s *Server) upload(c echo.Context) error {
	folder, err := pathID(c, "folder_id", "source", folderIDForm)
	if err != nil {
		return err
	}
	duplicates, err := duplicatesOf(c.QueryParam("duplicate_handling"))
	if err != nil {
		return err
	}
	part, err := s.filePart(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	file, skipped, err := s.Files.Upload(ctx, orgOf(ctx), folder, files.Upload{Name: part.FileName(), Override: c.QueryParam("name"),
		MediaType: part.Header.Get(echo.HeaderContentType), Duplicates: duplicates, Body: sent{part}})
	if err != nil {
		return err
	}
	if skipped {
		c.Response().Header().Set("X-Upload-Result", "skipped")
	}
	return c.JSON(http.StatusOK, file)
}

// pathID reads an id of a path, which must have its kind's form.
func pathID(c echo.Context, param, prefix string, form *regexp.Regexp) (string, error) {
	id := c.Param(param)
	if !form.MatchString(id) {
		return "", unprocessable("path."+param, fmt.Sprintf("expected string to be %s. Got: %q", idRule(prefix), id))
	}
	return id, nil
}

func duplicatesOf(value string) (files.Duplicates, error) {
	switch d := files.Duplicates(value); d {
	case "", files.Suffix, files.Skip, files.Reject, files.Replace:
		return d, nil
	}
	return "", unprocessable("query.duplicate_handling",
		fmt.Sprintf(`expected value to be one of "suffix, skip, error, replace". Got: %q`, value))
}

// filePart finds the file in a request's body, which is read no further than to its beginning.
func (s *Server) filePart(c echo.Context) (*multipart.Part, error) {
	r := c.Request()
	limit := s.MaxUploadBytes + uploadOverhead
	if r.ContentLength > limit {
		return nil, &files.TooLargeError{LimitBytes: s.MaxUploadBytes}
	}
	r.Body = &patient{http.MaxBytesReader(c.Response(), r.Body, limit), http.NewResponseController(c.Response())}
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, unprocessable("body", "expected multipart/form-data with a part named 'file': "+err.Error())
	}
	for {
		part, err := parts.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return nil, unprocessable("body.file", "expected a part named 'file' with the document")
		case err != nil:
			return nil, brokenBody(err)
		case part.FormName() == partFile:
			return part, nil
		}
	}
}

// patient is a body that may take as long as it keeps coming.
type patient struct {
	io.ReadCloser
	connection *http.ResponseController
}

// Read implements io.Reader.
func (p *patient) Read(into []byte) (int, error) {
	_ = p.connection.SetReadDeadline(time.Now().Add(uploadPatience)) // a test's recorder has none
	n, err := p.ReadCloser.Read(into)
	_ = p.connection.SetReadDeadline(time.Time{})
	return n, err
}

// sent is a part whose errors are its sender's.
type sent struct{ io.Reader }

// Read implements io.Reader.
func (s sent) Read(into []byte) (int, error) {
	n, err := s.Reader.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		err = brokenBody(err)
	}
	return n, err
}

// brokenBody is the error of a body that ended before its time; one that is too large stays what it is.
func brokenBody(err error) error {
	if _, limit := errors.AsType[*http.MaxBytesError](err); limit {
		return err
	}
	return db.Invalid("the upload broke off: %v", err)
}
