package server

import (
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/rest"
)

// fileStreamRoutes registers the file operations that stream their answers.
func (s *Server) fileStreamRoutes(a *rest.API) {
	for base, options := range folderPaths() {
		options = append(options, rest.Own)
		file := base + "/{folder_id}/files/{file_id}"
		get := func(path, summary, answer string, content map[string]*huma.MediaType) huma.Operation {
			return huma.Operation{Method: http.MethodGet, Path: path, Summary: summary,
				Parameters: []*huma.Param{rest.IDParam("folder_id", "source"), rest.IDParam("file_id", "file")},
				Responses:  map[string]*huma.Response{"200": {Description: answer, Content: content}}}
		}
		a.For(rest.Read).Stream(get(file+"/original",
			"download_folder_file: Download a file as it was uploaded. Ranges and If-None-Match are honoured.",
			"The file's bytes.", map[string]*huma.MediaType{
				"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}),
			s.original, options...)
		a.For(rest.Read).Head(file+"/original", s.original)
		a.For(rest.Read).Stream(get(file+"/events", "stream_folder_file_progress: Follow the work on a file.",
			"Server-sent events named progress, until the file is completed, failed or deleted.",
			rest.Content[files.Progress](a, "text/event-stream")), s.events, options...)
	}
}

// pathOfFile reads the folder's and the file's id from the path.
func pathOfFile(c echo.Context) (folder, file string, err error) {
	if folder, err = rest.PathID(c, "folder_id", "source"); err != nil {
		return "", "", err
	}
	file, err = rest.PathID(c, "file_id", "file")
	return folder, file, err
}

// original answers with a file as it was uploaded, or with a range of it. Browsers save the file instead of showing it.
func (s *Server) original(c echo.Context) error {
	folder, file, err := pathOfFile(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	o, err := s.Files.Download(ctx, rest.Org(ctx), folder, file)
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
	return rest.ServeContent(c, o.CreatedAt, o)
}

// disposition returns a Content-Disposition header for a download, in a form that every browser understands, whatever
// letters the name has.
func disposition(name string) string {
	if d := mime.FormatMediaType("attachment", map[string]string{"filename": name}); d != "" {
		return d
	}
	return "attachment"
}

// events sends a file's progress whenever it changes, until processing ends.
func (s *Server) events(c echo.Context) error {
	folder, file, err := pathOfFile(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	progress, err := s.Files.FollowProgress(ctx, s.Progress, rest.Org(ctx), folder, file)
	if err != nil {
		return err
	}
	defer progress.Close()
	out := rest.NewEvents(c)
	alive := time.NewTicker(rest.Heartbeat)
	defer alive.Stop()
	for more := true; more; {
		select {
		case <-ctx.Done():
			return nil
		case p, open := <-progress.Values:
			if !open {
				_, err = out.Send() // an error also if the key was revoked
				return err
			}
			if more, err = out.Send(rest.Event{Head: "event: progress", Data: p}); err != nil || p.Done() {
				return err
			}
		case <-alive.C:
			more = out.SendHeartbeat()
		}
	}
	return nil
}
