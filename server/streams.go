package server

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/files"
)

const (
	streamPatience = 30 * time.Second // for a client to take the next piece
	heartbeat      = 15 * time.Second // between two signs of life of a stream without news

	pathOriginal = "/files/:file_id/original"
	pathEvents   = "/files/:file_id/events"
	pathTail     = "/agents/:agent_id/events/stream"
)

// streams registers the routes whose answers are streamed, and describes them in the API's document.
func (s *Server) streams(e *echo.Echo, a *surface) {
	for base, old := range map[string]bool{"/v1/folders": false, "/v1/sources": true} {
		e.GET(base+"/:folder_id"+pathOriginal, s.original)
		e.HEAD(base+"/:folder_id"+pathOriginal, s.original)
		e.GET(base+"/:folder_id"+pathEvents, s.events)
		a.OpenAPI().AddOperation(s.streamOperation(a, base+"/{folder_id}/files/{file_id}/original", old, "Download a file as it was uploaded",
			"The file's bytes.", map[string]*huma.MediaType{"application/octet-stream": {
				Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}))
		a.OpenAPI().AddOperation(s.streamOperation(a, base+"/{folder_id}/files/{file_id}/events", old, "Follow the work on a file",
			"Server-sent events named progress, until the file is completed, failed or deleted.", map[string]*huma.MediaType{"text/event-stream": {
				Schema: a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[files.Progress](), true, "")}}))
	}
	e.GET("/v1"+pathTail, s.tail)
	a.OpenAPI().AddOperation(tailOperation(a))
}

// isStream names the routes whose requests or answers may take as long as they keep coming.
func isStream(route string) bool {
	return strings.HasSuffix(route, pathOriginal) || strings.HasSuffix(route, pathEvents) || strings.HasSuffix(route, pathTail) ||
		strings.HasSuffix(route, "/:folder_id/upload") || strings.HasSuffix(route, pathBatch)
}

func (s *Server) streamOperation(a *surface, path string, old bool, summary, answer string, content map[string]*huma.MediaType) *huma.Operation {
	return &huma.Operation{
		Method: http.MethodGet, Path: path, Summary: summary, OperationID: operationID(http.MethodGet, path), Tags: []string{tagOf(path)},
		Deprecated: old,
		Parameters: []*huma.Param{
			{Name: "folder_id", In: "path", Required: true, Schema: idSchema("source")},
			{Name: "file_id", In: "path", Required: true, Schema: idSchema("file")},
		},
		Responses: map[string]*huma.Response{"200": {Description: answer, Content: content}, "default": a.problemResponse()},
	}
}

// pathOfFile reads the ids of a file's path.
func pathOfFile(c echo.Context) (folder, file string, err error) {
	if folder, err = pathID(c, "folder_id", "source", folderIDForm); err != nil {
		return "", "", err
	}
	file, err = pathID(c, "file_id", "file", fileIDForm)
	return folder, file, err
}

// original answers with a file as it was uploaded, whole or a range of it, to be kept and not to be shown.
func (s *Server) original(c echo.Context) error {
	folder, file, err := pathOfFile(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	o, err := s.Files.Download(ctx, orgOf(ctx), folder, file)
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, o.MediaType)
	h.Set(echo.HeaderContentDisposition, disposition(path.Base(o.Name)))
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	h.Set("Content-Security-Policy", "sandbox")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", `"`+hex.EncodeToString(o.SHA256)+`"`)
	http.ServeContent(&patientWriter{c.Response(), http.NewResponseController(c.Response())}, c.Request(), "", o.CreatedAt, o)
	return nil
}

// disposition names a download, in the form that every browser reads, whatever the name's letters.
func disposition(name string) string {
	if d := mime.FormatMediaType("attachment", map[string]string{"filename": name}); d != "" {
		return d
	}
	return "attachment"
}

// patientWriter is an answer that may take as long as the client keeps taking it.
type patientWriter struct {
	http.ResponseWriter
	connection *http.ResponseController
}

// Write implements io.Writer.
func (w *patientWriter) Write(p []byte) (int, error) {
	_ = w.connection.SetWriteDeadline(time.Now().Add(streamPatience)) // a test's recorder has none
	n, err := w.ResponseWriter.Write(p)
	_ = w.connection.SetWriteDeadline(time.Time{})
	return n, err
}

// events tells how far a file is whenever that changes, until its work ends.
func (s *Server) events(c echo.Context) error {
	folder, file, err := pathOfFile(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	progress, err := s.Files.FollowProgress(ctx, s.Progress, orgOf(ctx), folder, file)
	if err != nil {
		return err
	}
	defer progress.Close()
	out := beginStream(c)
	alive := time.NewTicker(heartbeat)
	defer alive.Stop()
	for {
		text, done := sign, false
		select {
		case <-ctx.Done():
			return nil
		case p, open := <-progress.Values:
			if !open {
				return nil
			}
			data, err := json.Marshal(p)
			if err != nil {
				return err
			}
			text, done = fmt.Sprintf("event: progress\ndata: %s\n\n", data), p.Done()
		case <-alive.C:
		}
		if !out.send(text) || done {
			return nil
		}
	}
}

// sign is a comment in a stream without news.
const sign = ": the server is here\n\n"

// eventStream is an answer of server-sent events.
type eventStream struct {
	patientWriter
	answer *echo.Response
}

// beginStream begins an answer of server-sent events.
func beginStream(c echo.Context) *eventStream {
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	c.Response().WriteHeader(http.StatusOK)
	c.Response().Flush()
	return &eventStream{patientWriter{c.Response(), http.NewResponseController(c.Response())}, c.Response()}
}

// send passes a text on at once; it says no if the client is gone.
func (e *eventStream) send(text string) bool {
	if _, err := e.Write([]byte(text)); err != nil {
		return false
	}
	e.answer.Flush()
	return true
}
