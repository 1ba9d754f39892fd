package recall

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// seqForm is how a stretch of the log is named, as summaries name what they stand for: "seq 120-188", "[seq 120–188]", "120-188" or
// "seq 120".
var seqForm = regexp.MustCompile(`^\[?\s*(?:seq(?:uence)?\.?\s*(\d{1,15})(?:\s*(?:[-–—]|\.\.|to)\s*(\d{1,15}))?|(\d{1,15})\s*[-–—]\s*(\d{1,15}))\s*\]?$`)

// seqRange reads the name of a stretch of the log.
func seqRange(id string) (from, to int64, ok bool) {
	m := seqForm.FindStringSubmatch(strings.ToLower(strings.TrimSpace(id)))
	if m == nil {
		return 0, 0, false
	}
	first, last := m[1]+m[3], m[2]+m[4]
	if last == "" {
		last = first
	}
	from, errFrom := strconv.ParseInt(first, 10, 64)
	to, errTo := strconv.ParseInt(last, 10, 64)
	return from, to, errFrom == nil && errTo == nil
}

// maxStretchBytes bounds the messages, as they are stored, that are read as one text.
const maxStretchBytes = 64 << 20

// stretch is what was said from one place of an agent's log to another, both included, in the conversation that the first message there is
// of: each message with its place, its time in UTC and who speaks.
func (s *Store) stretch(ctx context.Context, org db.Org, agentID string, from, to int64) (string, error) {
	if from > to {
		return "", db.Invalid("the range %d-%d ends before it begins", from, to)
	}
	agent, err := s.agentKey(ctx, org, agentID)
	if err != nil {
		return "", err
	}
	args := pgx.StrictNamedArgs{"org": org, "agent": agent, "from": from, "to": to}
	const within = ` FROM ` + messageTables + `
		WHERE m.org = @org AND m.agent_key = @agent AND m.seq BETWEEN @from AND @to AND m.role <> 'summary' AND m.position <> ALL (c.prompts)`
	type measured struct {
		Conversation int64 `db:"conversation_key"`
		Bytes        int64 `db:"bytes"`
	}
	size, err := db.One[measured](ctx, s.db, `
		SELECT m.conversation_key, sum(octet_length(m.content::text))::bigint AS bytes`+within+`
		GROUP BY m.conversation_key
		ORDER BY min(m.seq)
		LIMIT 1`, args)
	if isNotFound(err) {
		return "", db.NotFound("The agent said nothing from seq %d to %d that can be read", from, to)
	}
	if err != nil {
		return "", err
	}
	if size.Bytes > maxStretchBytes {
		return "", db.Invalid("the messages from seq %d to %d have %d bytes; at most %d are read at once: ask for a part of the range", from, to,
			size.Bytes, maxStretchBytes)
	}
	args["conversation"] = size.Conversation
	rows, err := db.All[Message](ctx, s.db, `SELECT `+messageColumns+within+` AND m.conversation_key = @conversation ORDER BY m.seq`, args)
	var b strings.Builder
	for _, m := range rows {
		b.WriteString(m.line())
	}
	return b.String(), err
}

// line is a message with its place, when it was said, and by whom.
func (m Message) line() string {
	who := string(m.Role)
	if m.Name != nil && *m.Name != "" {
		who += " " + *m.Name
	}
	return fmt.Sprintf("[seq %d] %s %s: %s\n", m.Seq, m.CreatedAt.UTC().Format(time.DateTime), who, m.Text())
}
