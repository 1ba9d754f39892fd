package server

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/server/rest"
)

const (
	uploadOverhead = 1 << 20 // bytes of a multipart body besides its file
	partFile       = "file"
	partEncoding   = "encoding"
	maxFieldBytes  = 1000 // of a part besides the file
)

// uploadRoutes registers the operations that receive a file.
func (s *Server) uploadRoutes(a *rest.API) {
	query := func(name, doc string, values ...any) *huma.Param {
		return &huma.Param{Name: name, In: "query", Description: doc, Schema: rest.Enum(values...)}
	}
	parts := &huma.Schema{Type: huma.TypeObject, Required: []string{partFile},
		Properties: map[string]*huma.Schema{partFile: {Type: huma.TypeString, Format: "binary",
			Description: "The document."}, partEncoding: {Type: huma.TypeString,
			Description: "As the parameter encoding; it stands before the document."}}}
	for base, options := range folderPaths() {
		a.For(rest.Write).Stream(huma.Operation{
			Method: http.MethodPost, Path: base + "/{folder_id}/upload",
			Summary: "upload_folder_file: Upload a file to a folder. The answer comes at once; the text follows.",
			Parameters: []*huma.Param{
				rest.IDParam("folder_id", "source"),
				query("duplicate_handling", "What to do if the folder has a file of this name.",
					"suffix", "skip", "error", "replace"),
				query("encoding", "The encoding of a plain text, such as windows-1250, in place of the one that is found."),
				query("language", "The language, in ISO 639-1, by which words are found, in place of the one that is found."),
				query("name", "The name to store the file under, in place of its own."),
			},
			RequestBody: &huma.RequestBody{Required: true,
				Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: parts}}},
			Responses: map[string]*huma.Response{"200": {Description: "The file; its text follows.",
				Content: rest.Content[files.File](a, rest.JSON)}},
		}, func(c echo.Context) error {
			defer a.CountSpooled(c)()
			return s.upload(c)
		}, options...)
	}
}

// upload streams the part "file" of a multipart body into a folder. It holds no part of the file in memory.
func (s *Server) upload(c echo.Context) error {
	folder, err := rest.PathID(c, "folder_id", "source")
	if err != nil {
		return err
	}
	duplicates, err := duplicatesOf(c.QueryParam("duplicate_handling"))
	if err != nil {
		return err
	}
	encoding, err := encodingOf("query.encoding", c.QueryParam("encoding"))
	if err != nil {
		return err
	}
	language := c.QueryParam("language")
	if invalid, ok := errors.AsType[*db.FieldError](files.CheckLanguage(language)); ok {
		return rest.Unprocessable("query.language", invalid.Rule)
	}
	sent, err := s.filePart(c)
	if err != nil {
		return err
	}
	if sent.encoding != "" && encoding != "" && sent.encoding != encoding {
		return rest.Unprocessable("body.encoding", fmt.Sprintf("the parameter says %q and the part %q; name one encoding",
			encoding, sent.encoding))
	}
	encoding = cmp.Or(encoding, sent.encoding)
	ctx := c.Request().Context()
	file, skipped, err := s.Files.Upload(ctx, rest.Org(ctx), folder, files.Upload{Name: sent.FileName(),
		Override: c.QueryParam("name"), MediaType: sent.Header.Get(echo.HeaderContentType), Duplicates: duplicates,
		Encoding: encoding, Language: language, Body: sent})
	if err != nil {
		return err
	}
	if skipped {
		c.Response().Header().Set("X-Upload-Result", "skipped")
	}
	return c.JSON(http.StatusOK, file)
}

func duplicatesOf(value string) (files.Duplicates, error) {
	switch d := files.Duplicates(value); d {
	case "", files.Suffix, files.Skip, files.Reject, files.Replace:
		return d, nil
	}
	return "", rest.Unprocessable("query.duplicate_handling",
		fmt.Sprintf(`expected value to be one of "suffix, skip, error, replace". Got: %q`, value))
}

// encodingOf returns the encoding that an upload names, if it is known.
func encodingOf(place, value string) (string, error) {
	if value == "" {
		return "", nil
	}
	if err := document.CheckCharset(value); err != nil {
		return "", rest.Unprocessable(place, err.Error())
	}
	return value, nil
}

// filePart finds the file in a request's body. The next byte that is read is the file's first.
func (s *Server) filePart(c echo.Context) (sent, error) {
	r := c.Request()
	limit := s.MaxUploadBytes + uploadOverhead
	if r.ContentLength > limit {
		return sent{}, &files.TooLargeError{LimitBytes: s.MaxUploadBytes}
	}
	r.Body = rest.Body(c, limit)
	parts, err := r.MultipartReader()
	if err != nil {
		return sent{}, rest.Unprocessable("body", "expected multipart/form-data with a part named 'file': "+err.Error())
	}
	part, encoding, err := nextFile(parts)
	if errors.Is(err, io.EOF) {
		err = rest.Unprocessable("body.file", "expected a part named 'file' with the document")
	}
	return sent{part, parts, r.Body, encoding}, err
}

// nextFile finds the next part that holds a file, and the encoding that a part before it names. io.EOF if there is
// none.
func nextFile(parts *multipart.Reader) (file *multipart.Part, encoding string, err error) {
	for {
		part, err := parts.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return nil, encoding, io.EOF
		case err != nil:
			return nil, "", brokenBody(err)
		case part.FormName() == partFile:
			return part, encoding, nil
		case part.FormName() == partEncoding:
			value, err := io.ReadAll(io.LimitReader(part, maxFieldBytes))
			if err != nil {
				return nil, "", brokenBody(err)
			}
			if encoding, err = encodingOf("body.encoding", string(value)); err != nil {
				return nil, "", err
			}
		}
	}
}

// sent is the file in a body. Reading it fails unless the body ends after the file without another file. All its errors
// are faults of the sender, not of the server.
type sent struct {
	*multipart.Part
	parts *multipart.Reader
	body  io.Reader // the request's body

	encoding string // that a part before the file names; empty: none
}

func (s sent) Read(buffer []byte) (int, error) {
	n, err := s.Part.Read(buffer)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, brokenBody(err)
	}
	if err != nil {
		var late string
		switch _, late, err = nextFile(s.parts); {
		case err == nil:
			err = rest.Unprocessable("body.file", "expected one part named 'file'; send each file in a request of its own")
		case late != "":
			err = rest.Unprocessable("body.encoding", "expected the part 'encoding' before the part 'file'")
		case errors.Is(err, io.EOF):
			err = cmp.Or(readRest(s.body), io.EOF)
		}
	}
	return n, err
}

// readRest reads what follows the last part of a body, and ignores it. A request counts as being worked on once its
// body was read to the end.
func readRest(body io.Reader) error {
	if _, err := io.Copy(io.Discard, body); err != nil {
		return brokenBody(err)
	}
	return nil
}

// brokenBody returns the error for a body that ended early. It keeps the error of a body that is too large or too slow.
func brokenBody(err error) error {
	_, limit := errors.AsType[*http.MaxBytesError](err)
	if _, isProblem := errors.AsType[*rest.Problem](err); limit || isProblem {
		return err
	}
	return db.Invalid("the upload broke off: %v", err)
}
