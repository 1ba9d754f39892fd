package recall

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
)

// seqRange is a range of an agent's log, both ends included.
type seqRange struct {
	from, to int64
	Reach    // without a conversation: the conversation of the first message
}

// seqRangeForm matches the ways in which summaries and models write a range: "seq 120-188", "[seq 120–188]", "120-188"
// or "seq 120".
var seqRangeForm = regexp.MustCompile(
	`^\[?\s*(?:seq(?:uence)?\.?\s*(\d+)(?:\s*(?:[-–—]|\.\.|to)\s*(\d+))?|(\d+)\s*[-–—]\s*(\d+))\s*\]?$`)

// parseSeqRange reads a range as a model writes it. ok is false if the text is not a range.
func parseSeqRange(text string) (r seqRange, ok bool) {
	m := seqRangeForm.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if m == nil {
		return r, false
	}
	first, last := m[1]+m[3], m[2]+m[4]
	if last == "" {
		last = first
	}
	r.from, _ = strconv.ParseInt(first, 10, 64) // a number beyond int64 is read as the largest int64
	r.to, _ = strconv.ParseInt(last, 10, 64)
	return r, true
}

// maxSeqRangeBytes bounds the messages that are read as one text: their stored content and their long results.
const maxSeqRangeBytes = 64 << 20

// seqRangeText returns the messages of a range as one text. Each message has its seq, its time in UTC, its speaker, and
// its long results whole; its lines after the first are indented. Summaries and system prompts are left out. All
// messages are of one conversation: r.Conversation or, if that is empty, the conversation of the range's first message.
// Messages that are gone, or belong to another conversation, are read from their copies, under the seqs of the
// originals. ErrInvalid if the messages have more than most bytes.
func (s *Store) seqRangeText(ctx context.Context, org db.Org, agentID string, r seqRange, most int64) (text, error) {
	source, size, err := s.rangeOf(ctx, org, agentID, r, most)
	if err != nil {
		return text{}, err
	}
	return text{bytes: size, pieces: s.rangeLines(ctx, org, source, r)}, nil
}

// rangeOf returns where a range is read, and the bytes of its messages. ErrInvalid if they are more than most.
func (s *Store) rangeOf(ctx context.Context, org db.Org, agentID string, r seqRange, most int64) (source, int64,
	error) {
	if r.from > r.to {
		return source{}, 0, db.Invalid("the range %d-%d ends before it begins", r.from, r.to)
	}
	src, err := s.rangeSource(ctx, org, agentID, r)
	if isNotFound(err) {
		return source{}, 0, db.NotFound("The agent said nothing from seq %d to %d that can be read", r.from, r.to)
	}
	if err != nil {
		return source{}, 0, err
	}
	size, err := db.One[int64](ctx, s.db, originals+`
		SELECT coalesce(sum(octet_length(m.content::text) + coalesce((
			SELECT sum(b.size_bytes) FROM clips k JOIN blobs b ON b.org = k.org AND b.sha256 = k.sha256
			WHERE k.org = @org AND k.conversation_key = m.conversation_key AND k.position = m.position), 0)), 0)::bigint`+
		inRange, src.args(org, r))
	if err != nil {
		return source{}, 0, err
	}
	if size > most {
		return source{}, 0, db.Invalid("the messages from seq %d to %d have %d bytes; at most %d are read at once: ask for "+
			"a part of the range", r.from, r.to, size, most)
	}
	return src, size, nil
}

// originals are the messages that a range names. The page begins after position @after.
const originals = `
	WITH o AS MATERIALIZED (
		SELECT position, seq FROM messages
		WHERE org = @org AND agent_key = @agent AND conversation_key = @named AND seq BETWEEN @from AND @to
		  AND position > @after
	)`

// inRange are the messages that are read for originals: the same ones, or copies of them.
const inRange = ` FROM ` + messageTables + `
	JOIN o ON o.position = m.position
	WHERE m.org = @org AND m.conversation_key = @read AND m.position <= @end AND ` + isSaid

// args are the arguments for originals and inRange.
func (at source) args(org db.Org, r seqRange) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"org": org, "agent": at.agent, "from": r.from, "to": r.to, "named": at.Named,
		"read": at.Read, "end": at.end, "after": 0}
}

// rangeLines yields each message of a range as lines.
func (s *Store) rangeLines(ctx context.Context, org db.Org, src source, r seqRange) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for page, err := range s.rangePages(ctx, org, src, r) {
			for _, m := range page {
				if err = ctx.Err(); !yield(m.line(), err) || err != nil {
					return
				}
			}
			if err != nil {
				yield("", err)
				return
			}
		}
	}
}

// rangePages yields the messages of a range with their long results whole, in pages of about pageBytes.
func (s *Store) rangePages(ctx context.Context, org db.Org, src source, r seqRange) iter.Seq2[[]Message, error] {
	return func(yield func([]Message, error) bool) {
		args := src.args(org, r)
		for most := copiedAtOnce; ; {
			args["most"] = most
			page, isWhole, err := db.Within(ctx, s.db, db.Budget[Message]{Bytes: pageBytes}, originals+`
				SELECT `+strings.Replace(messageColumns, "m.seq", "o.seq", 1)+inRange+`
				ORDER BY m.position
				LIMIT @most`, args)
			if err != nil {
				yield(nil, err)
				return
			}
			for messages := range withinPage(page) {
				whole, err := s.whole(ctx, org, messages)
				if !yield(whole, err) || err != nil {
					return
				}
			}
			if isWhole && len(page) < most {
				return
			}
			args["after"], most = page[len(page)-1].Position, nextPage(most, len(page), copiedAtOnce, isWhole)
		}
	}
}

// withinPage yields messages in groups. The long results of a group have at most pageBytes, unless the group is a
// single message.
func withinPage(messages []Message) iter.Seq[[]Message] {
	return func(yield func([]Message) bool) {
		for len(messages) > 0 {
			n := 1
			for bytes := messages[0].clipBytes(); n < len(messages); n++ {
				if bytes += messages[n].clipBytes(); bytes > pageBytes {
					break
				}
			}
			if !yield(messages[:n]) {
				return
			}
			messages = messages[n:]
		}
	}
}

// clipBytes returns the size of a message's long results.
func (m Message) clipBytes() (n int) {
	for _, p := range m.Content {
		if p.Clip != nil {
			n += p.Clip.Bytes
		}
	}
	return n
}

// isSaid is a condition: message m of conversation c is neither a summary nor a system prompt.
const isSaid = `m.role <> 'summary' AND m.position <> ALL (c.prompts)`

// source says where the messages of a range are read.
type source struct {
	Named int64 `db:"named"` // key of the conversation that has the range's messages
	Read  int64 `db:"read"`  // key of the conversation to read: Named, or one with copies of its messages
	end   int   // position of the last message that both have
	agent int64 // the agent's key
}

// rangeSource returns where a range is read: in the conversation of its first message or, if that is gone or not the
// range's conversation, in one with copies of the messages. ErrNotFound if no message is there.
func (s *Store) rangeSource(ctx context.Context, org db.Org, agentID string, r seqRange) (source, error) {
	agent, err := db.AgentKey(ctx, s.db, org, agentID)
	if err != nil {
		return source{}, err
	}
	args := pgx.StrictNamedArgs{"org": org, "agent": agent, "from": r.from, "to": r.to}
	found, err := db.One[source](ctx, s.db, `
		SELECT m.conversation_key AS named, m.conversation_key AS read FROM `+messageTables+`
		WHERE m.org = @org AND m.agent_key = @agent AND m.seq BETWEEN @from AND @to AND `+isSaid+` AND `+r.where(args)+`
		ORDER BY m.seq
		LIMIT 1`, args)
	if !isNotFound(err) {
		found.end, found.agent = lastPosition, agent
		return found, err
	}
	return s.copiedSource(ctx, org, agent, r)
}

// lastPosition is behind every message.
const lastPosition = 1<<31 - 1

// copiedSource returns the conversation with copies of a range's messages.
func (s *Store) copiedSource(ctx context.Context, org db.Org, agent int64, r seqRange) (source, error) {
	l, err := s.lineageOf(ctx, org, agent, false)
	if err == nil {
		err = s.hideOthers(ctx, org, l, r.Users)
	}
	if err != nil || len(l) == 0 {
		return source{}, cmp.Or(err, db.ErrNotFound)
	}
	within := int64(0)
	if r.Conversation != "" {
		args := pgx.StrictNamedArgs{"org": org, "agent": agent}
		within, err = db.One[int64](ctx, s.db, `
			SELECT c.key FROM conversations c
			WHERE c.org = @org AND c.agent_key = @agent AND c.deleted_at IS NULL AND `+r.where(args), args)
		if err != nil {
			return source{}, err
		}
	}
	type first struct {
		Key      int64 `db:"conversation_key"`
		Position int   `db:"position"`
	}
	named, err := db.All[first](ctx, s.db, `
		SELECT m.conversation_key, min(m.position) AS position
		FROM messages m JOIN conversations c ON c.org = m.org AND c.key = m.conversation_key
		WHERE m.org = $1 AND m.agent_key = $2 AND m.seq BETWEEN $3 AND $4 AND `+isSaid+`
		GROUP BY m.conversation_key
		ORDER BY min(m.seq)`, org, agent, r.from, r.to)
	for _, n := range named {
		if key, end := l.heir(n.Key, within); end >= n.Position {
			return source{n.Key, key, end, agent}, err
		}
	}
	return source{}, cmp.Or(err, db.ErrNotFound)
}

// line returns a message with its seq, its time in UTC and its speaker. All its lines but the first are indented.
func (m Message) line() string {
	who := string(m.Role)
	if m.Name != nil && *m.Name != "" {
		who += " " + strings.Join(strings.FieldsFunc(*m.Name, endsName), " ")
	}
	at := m.CreatedAt.UTC().Format(time.DateTime)
	return indented(fmt.Sprintf(frame.Position+" %s %s: ", m.Seq, at, who), m.Text())
}

// endsName reports whether a character could end a name in the head of a message.
func endsName(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("[]:", r) }

// indented puts head before text, indents the lines after the first, and marks stray line ends, so that no part of text
// can pass for the first line of a message. The result ends with a line end. The text may have 16 MiB, so it is copied
// only once.
func indented(head, text string) string {
	text = frame.MarkLineEnds(strings.TrimRight(text, "\n"))
	var b strings.Builder
	b.Grow(len(head) + len(text) + 2*strings.Count(text, "\n") + 1)
	b.WriteString(head)
	for more := true; more; {
		var line string
		line, text, more = strings.Cut(text, "\n")
		b.WriteString(line)
		b.WriteByte('\n')
		if more {
			b.WriteString("  ")
		}
	}
	return b.String()
}
