package server

import (
	"context"

	"github.com/loci-memory/loci/server/rest"

	"github.com/loci-memory/loci/recall"
)

func (s *Server) expand(ctx context.Context, in *struct {
	rest.OfAgent
	ClipID  rest.ClipID `path:"clip_id" doc:"Of a long result of a tool, or of a message, or a range of the log, as summaries name it: seq 120-188."`
	Offset  int         `query:"offset" minimum:"0" doc:"In bytes."`
	Limit   int         `query:"limit" minimum:"1" maximum:"1048576" doc:"In bytes; 16,000 if absent."`
	Pattern string      `query:"pattern" doc:"A regular expression of RE2: the lines that it fits are returned in place of the text."`
}) (recall.Expansion, error) {
	return s.Recall.Expand(ctx, rest.Org(ctx), string(in.AgentID),
		recall.ExpandQuery{ID: string(in.ClipID), Offset: in.Offset, Limit: in.Limit, Pattern: in.Pattern})
}
