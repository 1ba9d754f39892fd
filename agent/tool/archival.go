package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

type archivalInsertArgs struct {
	Content text       `json:"content"`
	Tags    list[text] `json:"tags"`

	Until      text `json:"valid_until"`
	Supersedes text `json:"supersedes"`
}

func (m Memories) archivalInsert(ctx context.Context, c Caller, a archivalInsertArgs) (Result, error) {
	if err := must("archival_memory_insert", "content", a.Content); err != nil {
		return Result{}, err
	}
	until, err := validUntil(a.Until, clockOf(c.Agent))
	if err != nil {
		return Result{}, err
	}
	got, err := m.Archival.InsertFor(ctx, c.Org, c.archives(), []archival.Draft{{Text: string(a.Content),
		Tags: plain(a.Tags), Validity: db.Validity{ValidUntil: until}, Supersedes: string(a.Supersedes)}})
	if field, ok := errors.AsType[*db.FieldError](err); ok && field.Field == "supersedes" {
		err = db.Invalid("%v: %s.", err, passageIDs)
	}
	if err != nil {
		return Result{}, err
	}
	text := insertedText(got)
	if len(got) == 1 {
		text += similarText(slices.DeleteFunc(c.lookalikes.To(got[0]), func(p archival.Similar) bool {
			return p.ID == string(a.Supersedes)
		}))
	}
	if a.Supersedes != "" {
		text += fmt.Sprintf(" It supersedes %s, which ended with it: searches find that one only with as_of.",
			echo(string(a.Supersedes)))
	}
	return Result{Text: text}, nil
}

// archivalLookalikes finds the passages that an insertion's result names as similar. Without them the result names
// none.
func (m Memories) archivalLookalikes(ctx context.Context, c Caller, raw json.RawMessage) Caller {
	var a archivalInsertArgs
	if _, err := decodeNamed("archival_memory_insert", raw, &a); err == nil && a.Content != "" {
		c.lookalikes, _ = m.Archival.Lookalikes(ctx, c.Org, c.archives(), string(a.Content))
	}
	return c
}

// validUntil reads the time until which a passage is valid. A date means the end of that day.
func validUntil(given text, now clock) (*time.Time, error) {
	until, err := recall.ParseUntil(string(given), now.zone)
	if err != nil {
		return nil, db.Invalid(invalidTime, "valid_until", echo(string(given)))
	}
	return until, nil
}

// invalidTime is the error text for an argument that is not a time.
const invalidTime = "Invalid %s format: %s. Use ISO 8601 format (YYYY-MM-DD or YYYY-MM-DDTHH:MM)"

const passageIDs = "a search of your archival memory shows the ids of passages"

// insertedText lists the passages of an insertion: first the new ones, then those that the archive already had.
func insertedText(got []archival.Inserted) string {
	var fresh, known []string
	for _, p := range got {
		if slices.Contains(fresh, p.ID) || slices.Contains(known, p.ID) {
			continue // the text has this part twice
		}
		if p.Duplicate {
			known = append(known, p.ID)
		} else {
			fresh = append(fresh, p.ID)
		}
	}
	switch n := len(fresh) + len(known); {
	case n == 1 && len(known) == 1:
		return fmt.Sprintf("Your archival memory has this already, as %s%s. Nothing was added.", known[0],
			tagged(got[0].Tags))
	case n == 1:
		return "Archived as " + fresh[0] + tagged(got[0].Tags) + "."
	}
	s := fmt.Sprintf("The text was long and was archived as %d passages: %s.", len(fresh)+len(known),
		joined(append(fresh, known...)))
	if len(known) > 0 {
		s += fmt.Sprintf(" %d of them your archival memory had already.", len(known))
	}
	return s
}

// similarText names the passages that say nearly what a new one says; empty if there is none.
func similarText(similar []archival.Similar) string {
	if len(similar) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(" Similar to what is there already; if it is the same fact, keep one of them:")
	for _, p := range similar {
		fmt.Fprintf(&b, "\n%s (%.2f): %s", p.ID, p.Similarity, line(p.Text))
	}
	return b.String()
}

func tagged(tags []string) string {
	if len(tags) == 0 {
		return ""
	}
	return ", tagged " + joined(tags)
}

type archivalSearchArgs struct {
	Query  text      `json:"query"`
	Tags   tagFilter `json:"tags"`
	Match  text      `json:"tag_match_mode"`
	TopK   *number   `json:"top_k"`
	Offset *number   `json:"offset"`
	Start  text      `json:"start_datetime"`
	End    text      `json:"end_datetime"`
	AsOf   text      `json:"as_of"`
	Filter condition `json:"filter"`
	Facets flag      `json:"facets"`
}

// passagesLimit is the number of passages that a search returns by default (Letta: 5).
const passagesLimit = 5

func (m Memories) archivalSearch(ctx context.Context, c Caller, a archivalSearchArgs) (Result, error) {
	now := clockOf(c.Agent)
	q, err := a.query(now)
	if err != nil {
		return Result{}, err
	}
	q.AgentID, q.Users, q.Filter, q.Zone = c.Agent.ID, c.Users, a.Filter.json(), now.zone
	if a.Facets && strings.TrimSpace(q.Text) != "" {
		return Result{},
			db.Invalid("facets counts what is there, and searches nothing: give an empty query, and narrow with " +
				"filter, tags or dates.")
	}
	if a.Facets {
		return m.archivalFacets(ctx, c, q)
	}
	found, err := m.Archival.Search(ctx, c.Org, q)
	if err != nil {
		return Result{}, err
	}
	return Result{Text: passagesText(q, found, now, c.maxChars())}, nil
}

func (a archivalSearchArgs) query(now clock) (archival.Query, error) {
	q := archival.Query{Text: strings.TrimSpace(string(a.Query)), Tags: plain(a.Tags),
		Match: archival.Match(strings.ToLower(string(a.Match)))}
	if q.Match != "" && q.Match != archival.Any && q.Match != archival.All {
		return q, db.Invalid("tag_match_mode may be any or all, got '%s'.", echo(string(a.Match)))
	}
	var err error
	if q.Limit, err = lowered(a.TopK, passagesLimit, archival.SearchMax); err != nil {
		return q, db.Invalid("top_k must be between 1 and %d, got %d", archival.SearchMax, *a.TopK)
	}
	if q.Offset, err = skipped(a.Offset); err != nil {
		return q, err
	}
	if q.Held.AsOf, err = recall.ParseStart(string(a.AsOf), now.zone); err != nil {
		return q, db.Invalid(invalidTime, "as_of", echo(string(a.AsOf)))
	}
	if q.Start, err = recall.ParseStart(string(a.Start), now.zone); err != nil {
		return q, db.Invalid(invalidTime, "start_datetime", echo(string(a.Start)))
	}
	if q.End, err = recall.ParseEnd(string(a.End), now.zone); err != nil {
		return q, db.Invalid(invalidTime, "end_datetime", echo(string(a.End)))
	}
	if q.Start != nil && q.End != nil && q.Start.After(*q.End) {
		return q, db.Invalid("start_datetime %s is after end_datetime %s: no passage can be between them.",
			echo(string(a.Start)), echo(string(a.End)))
	}
	return q, nil
}

// archivalFacets counts the passages that a search without a text would see.
func (m Memories) archivalFacets(ctx context.Context, c Caller, q archival.Query) (Result, error) {
	found, err := m.Archival.Facets(ctx, c.Org, q)
	if err != nil {
		return Result{}, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "What %s of your archival memory have:\n", count(found.Passages, "passage"))
	for _, field := range slices.Sorted(maps.Keys(found.Counts)) {
		var values []string
		for _, v := range found.Counts[field] {
			values = append(values, fmt.Sprintf("%s (%d)", line(v.Value), v.Count))
		}
		fmt.Fprintf(&b, "%s: %s\n", line(field), strings.Join(values, ", "))
	}
	return Result{Text: strings.TrimSuffix(b.String(), "\n")}, nil
}

// passagesText shows passages, the best first.
func passagesText(q archival.Query, r archival.Results, now clock, chars int) string {
	note := remarks(r.SearchedFor, r.Note, r.WhyEnded(), q.Text != "" && !r.ByMeaning)
	if r.Wordless {
		return r.WhyNothing() + "\nTo see the newest passages, call: " + newestPassages +
			remarks("", r.Note, r.WhyEnded(), false)
	}
	if len(r.Hits) == 0 {
		return noPassages(q) + note
	}
	return mostHits(chars, len(r.Hits), func(show shownHits) string {
		head := fmt.Sprintf("Found %s in your archival memory", count(len(r.Hits), "passage"))
		if q.Text != "" {
			head += fmt.Sprintf(" for query: '%s'", echo(q.Text))
		}
		var b strings.Builder
		b.WriteString(head + "\n" + strings.Repeat("=", len([]rune(head))) + "\n")
		for _, h := range r.Hits[:show.n] {
			b.WriteString(passageText(h, q.Text, now, show.chars))
		}
		b.WriteString(show.cutNote("top_k"))
		if omitted := len(r.Hits) - show.n; omitted > 0 {
			fmt.Fprintf(&b, "\nNote: the %d lowest-ranked passages did not fit here. Ask for fewer with top_k, or narrow the "+
				"search with tags or dates.", omitted)
		}
		b.WriteString(nextPage(q.Offset, show.n, r.More || show.n < len(r.Hits)))
		return strings.TrimSuffix(b.String(), "\n") + note
	})
}

// passageText shows so many characters of a passage under a head; only the head if that is 0.
func passageText(h archival.Hit, query string, now clock, chars int) string {
	about := now.format(h.HappenedAt) + line(tagged(h.Tags)) + held(h.Validity, h.Ended, h.SupersededBy, now)
	head := fmt.Sprintf("=== %s (%s) ===\n", h.ID, about)
	if chars == 0 {
		return head
	}
	return "\n" + head + indented(excerpt(h.Text, query, chars))
}

// held says from when to when a text is valid, and what superseded it. It returns "" for a text that is always valid.
func held(v db.Validity, ended bool, by *string, now clock) (text string) {
	if v.ValidFrom != nil {
		text += ", holds from " + now.format(*v.ValidFrom)
	}
	switch {
	case ended:
		text += ", ended " + now.format(*v.ValidUntil)
	case v.ValidUntil != nil:
		text += ", until " + now.format(*v.ValidUntil)
	}
	if by != nil {
		text += ", superseded by " + *by
	}
	return text
}

// noPassages describes a search that found nothing, and suggests a call to try.
func noPassages(q archival.Query) string {
	var filter string
	if len(q.Tags) > 0 {
		filter += " with the tags " + echo(joined(q.Tags))
		if slices.Contains(q.Tags, "") {
			filter += " (one is empty, which no passage has)"
		}
	}
	if q.Start != nil || q.End != nil {
		filter += " in that time"
	}
	if q.Held.AsOf != nil {
		filter += " that held then"
	}
	if q.Filter != nil {
		filter += " that fit the filter"
	}
	switch {
	case q.Offset > 0:
		return fmt.Sprintf("Your archival memory has no more passages%s at offset %d. To see the first, repeat the call "+
			"with offset=0.", filter, q.Offset)
	case q.Text == "" && filter == "":
		return "Your archival memory is empty: there is nothing to find."
	case q.Text == "":
		return "Your archival memory has no passages" + filter + ". To see the newest of all, call: " + newestPassages
	}
	s := fmt.Sprintf("No passage of your archival memory was found for query: '%s'%s. ", echo(q.Text), filter)
	if filter != "" {
		return s + "To search without filters, call: " + invocation("archival_memory_search",
			argument{"query", q.Text, nil})
	}
	return s + "Try other words for the same. To see the newest passages, call: " + newestPassages
}

var newestPassages = invocation("archival_memory_search", argument{"query", "", nil})

type archivalUpdateArgs struct {
	ID      text       `json:"id"`
	Content text       `json:"content"`
	Tags    list[text] `json:"tags"`
	Until   text       `json:"valid_until"`
}

func (m Memories) archivalUpdate(ctx context.Context, c Caller, a archivalUpdateArgs) (Result, error) {
	if err := must("archival_memory_update", "id", a.ID); err != nil {
		return Result{}, err
	}
	var u archival.PassageUpdate
	if a.Content != "" {
		u.Text = new(string(a.Content))
	}
	if a.Tags != nil {
		u.Tags = plain(a.Tags)
	}
	now := clockOf(c.Agent)
	until, err := validUntil(a.Until, now)
	if err != nil {
		return Result{}, err
	}
	u.ValidUntil = boundOf(until)
	if u.Text == nil && u.Tags == nil && until == nil {
		return Result{}, db.Invalid("archival_memory_update needs content, tags or valid_until; an empty list of " +
			"tags changes nothing.")
	}
	p, err := m.Archival.UpdatePassage(ctx, c.Org, c.archives(), string(a.ID), u)
	err = whereFound(err, passageIDs)
	text := fmt.Sprintf("%s was changed: it has %d characters", p.ID, utf8.RuneCountInString(p.Text))
	return Result{Text: text + tagged(p.Tags) + held(p.Validity, p.Ended, p.SupersededBy, now) + "."}, err
}

type archivalDeleteArgs struct {
	ID text `json:"id"`
}

func (m Memories) archivalDelete(ctx context.Context, c Caller, a archivalDeleteArgs) (Result, error) {
	if err := must("archival_memory_delete", "id", a.ID); err != nil {
		return Result{}, err
	}
	err := whereFound(m.Archival.DeletePassage(ctx, c.Org, c.archives(), string(a.ID)), passageIDs)
	return Result{Text: fmt.Sprintf("%s was deleted from your archival memory.", echo(string(a.ID)))}, err
}
