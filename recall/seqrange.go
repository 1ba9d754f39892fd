package recall

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// seqRange is a range of an agent's log, both ends included.
type seqRange struct {
	from, to     int64
	conversation string // to read from, an id or DefaultConversation; empty is that of the range's first message
}

// seqRangeForm matches the ways in which summaries and models name a range: "seq 120-188", "[seq 120–188]", "120-188"
// or "seq 120".
var seqRangeForm = regexp.MustCompile(
	`^\[?\s*(?:seq(?:uence)?\.?\s*(\d+)(?:\s*(?:[-–—]|\.\.|to)\s*(\d+))?|(\d+)\s*[-–—]\s*(\d+))\s*\]?$`)

// parseSeqRange reads the name of a range; ok is false if the text is not one.
func parseSeqRange(text string) (r seqRange, ok bool) {
	m := seqRangeForm.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if m == nil {
		return r, false
	}
	first, last := m[1]+m[3], m[2]+m[4]
	if last == "" {
		last = first
	}
	r.from, _ = strconv.ParseInt(first, 10, 64) // a number beyond int64 is read as the largest
	r.to, _ = strconv.ParseInt(last, 10, 64)
	return r, true
}

// maxSeqRangeBytes bounds the stored content, with the long results, of the messages that are read as one text.
const maxSeqRangeBytes = 64 << 20

// seqRangeText returns the messages of a range as one text, each with its seq, its time in UTC and its speaker, and
// with its long results whole; lines after the first of a message are indented. They are of one conversation, that of
// the range's first message; summaries and system prompts are left out.
func (s *Store) seqRangeText(ctx context.Context, org db.Org, agentID string, r seqRange) (string, error) {
	if r.from > r.to {
		return "", db.Invalid("the range %d-%d ends before it begins", r.from, r.to)
	}
	agent, err := db.AgentKey(ctx, s.db, org, agentID)
	if err != nil {
		return "", err
	}
	args := pgx.StrictNamedArgs{"org": org, "agent": agent, "from": r.from, "to": r.to,
		"within": r.conversation}
	const inRange = ` FROM ` + messageTables + `
		WHERE m.org = @org AND m.agent_key = @agent AND m.seq BETWEEN @from AND @to
		  AND m.role <> 'summary' AND m.position <> ALL (c.prompts)
		  AND ` + inConversation + `
		`
	type measured struct {
		Conversation int64 `db:"conversation_key"`
		Bytes        int64 `db:"bytes"`
	}
	size, err := db.One[measured](ctx, s.db, `
		SELECT m.conversation_key, sum(octet_length(m.content::text) + coalesce((
			SELECT sum(b.size_bytes) FROM clips k JOIN blobs b ON b.org = k.org AND b.sha256 = k.sha256
			WHERE k.org = m.org AND k.conversation_key = m.conversation_key AND k.position = m.position), 0))::bigint AS bytes`+
		inRange+`
		GROUP BY m.conversation_key
		ORDER BY min(m.seq)
		LIMIT 1`, args)
	if isNotFound(err) {
		return "", db.NotFound("The agent said nothing from seq %d to %d that can be read", r.from, r.to)
	}
	if err != nil {
		return "", err
	}
	if size.Bytes > maxSeqRangeBytes {
		return "", db.Invalid("the messages from seq %d to %d have %d bytes; at most %d are read at once: ask for a part of "+
			"the range", r.from, r.to, size.Bytes, maxSeqRangeBytes)
	}
	args["conversation"] = size.Conversation
	rows, err := db.All[Message](ctx, s.db,
		`SELECT `+messageColumns+inRange+` AND m.conversation_key = @conversation ORDER BY m.seq`, args)
	if err == nil {
		rows, err = s.whole(ctx, org, rows)
	}
	var b strings.Builder
	for _, m := range rows {
		b.WriteString(m.line())
	}
	return b.String(), err
}

// line returns a message with its seq, its time in UTC and its speaker, as a line or more, of which only the first is
// not indented.
func (m Message) line() string {
	who := string(m.Role)
	if m.Name != nil && *m.Name != "" {
		who += " " + strings.Join(strings.FieldsFunc(*m.Name, endsName), " ")
	}
	return fmt.Sprintf("[seq %d] %s %s: %s\n", m.Seq, m.CreatedAt.UTC().Format(time.DateTime), who, indented(m.Text()))
}

// endsName reports whether a character could end a name in the head of a message.
func endsName(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("[]:", r) }
