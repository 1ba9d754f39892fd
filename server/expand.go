package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loci-memory/loci/recall"
)

// expandable is the id of a clip, or of a message, or a stretch of the agent's log.
type expandable string

// Schema implements huma.SchemaProvider.
func (expandable) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^(clip|message)-" + anyUUID + `$|^\[?(seq )?\d+([-–]\d+)?\]?$`,
		PatternDescription: idRule("clip") + ", or a range such as 'seq 120-188'"}
}

// anyUUID is the form of the ids of messages, which may come from elsewhere.
const anyUUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

func (s *Server) expand(ctx context.Context, in *struct {
	OfAgent
	ClipID  expandable `path:"clip_id" doc:"Of a long result of a tool, or of a message, or a range of the log, as summaries name it: seq 120-188."`
	Offset  int        `query:"offset" minimum:"0" doc:"In bytes."`
	Limit   int        `query:"limit" minimum:"1" maximum:"1048576" doc:"In bytes; 16,000 if absent."`
	Pattern string     `query:"pattern" doc:"A regular expression of RE2: the lines that it fits are returned in place of the text."`
}) (recall.Expansion, error) {
	return s.Recall.Expand(ctx, orgOf(ctx), string(in.AgentID), string(in.ClipID), in.Offset, in.Limit, in.Pattern)
}
