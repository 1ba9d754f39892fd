package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// passageBatchRoutes registers the operation that reads and writes passages one by one.
func (s *Server) passageBatchRoutes(a *rest.API) {
	passages := rest.NewListReader[letta.NewPassage](a, "passages")
	a.For(rest.Write).Stream(huma.Operation{
		Method: http.MethodPost, Path: "/v1/archives/{archive_id}/passages/batch",
		Summary: "create_archive_passages: Insert passages into an archive, all or none. Up to 10,000, answered as " +
			"they are read back.",
		Parameters:  []*huma.Param{rest.IDParam("archive_id", "archive")},
		RequestBody: &huma.RequestBody{Required: true, Content: rest.Content[letta.ManyPassages](a, rest.JSON)},
		Responses: map[string]*huma.Response{
			"200": {Description: "The passages, in their order.",
				Content: rest.Content[[]letta.ArchivalPassage](a, rest.JSON)}},
	}, func(c echo.Context) error { return s.createArchivePassages(c, passages) })
}

// createArchivePassages stores a body of passages. Only one passage is in memory at a time.
func (s *Server) createArchivePassages(c echo.Context, passages *rest.ListReader[letta.NewPassage]) error {
	id, err := rest.PathID(c, "archive_id", "archive")
	if err != nil {
		return err
	}
	r := c.Request()
	ctx, cancel := context.WithTimeout(r.Context(), batchTimeout)
	defer cancel()
	zone, err := s.archiveZone(ctx, id)
	if err != nil {
		return err
	}
	if r.ContentLength > maxCaptureBytes {
		return rest.TooLarge(maxCaptureBytes)
	}
	warnings := rest.WarningsOf(ctx)
	drafts := draftsOf(passages.Items(rest.Body(c, maxCaptureBytes), &warnings), zone)
	batch, err := s.Archival.InsertMany(ctx, rest.Org(ctx), id, drafts)
	if err != nil {
		return withPassage(err)
	}
	defer batch.Close()
	left, more, err := batch.Left(letta.MaxLeft)
	if err != nil {
		return err
	}
	warnings = append(warnings, letta.LeftWarnings(left, more, patchedPassages)...)
	warnings.InHeader(c)
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	return writePassages(rest.Answer(c), batch)
}

// draftsOf yields the drafts of passages, up to the first invalid passage. Times without an offset are in zone.
func draftsOf(passages iter.Seq2[letta.NewPassage, error], zone *time.Location) iter.Seq2[archival.Draft, error] {
	return func(yield func(archival.Draft, error) bool) {
		i := 0
		for p, err := range passages {
			var d archival.Draft
			if err == nil {
				if d, err = p.Draft(zone); err != nil {
					err = fmt.Errorf("passages[%d].%w", i, err)
				}
			}
			if !yield(d, err) || err != nil {
				return
			}
			i++
		}
	}
}

// writePassages writes a batch as a JSON list. After an error it is too late for another status: the passages stay
// stored, and the answer ends early.
func writePassages(to io.Writer, batch *archival.Batch) error {
	out := bufio.NewWriterSize(to, 1<<16)
	separator := "["
	for p, err := range batch.Inserted() {
		if err != nil {
			return err
		}
		shown, err := json.Marshal(letta.InsertedOf(p))
		if err != nil {
			return err
		}
		_, _ = out.WriteString(separator) // Flush returns the error
		_, _ = out.Write(shown)
		separator = ","
	}
	_, _ = out.WriteString("]\n")
	return out.Flush()
}
