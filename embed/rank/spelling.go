package rank

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/wordindex"
)

// Limits of the search for other spellings.
const (
	minSpelled  = 5      // letters of a word that may be misspelt
	minReplaced = 6      // letters of a word that may have a wrong one
	maxSpelled  = 20     // letters
	maxMisspelt = 3      // words of a query
	maxLookedUp = 5_000  // terms of all owners
	maxSharing  = 2_000  // rows that are read; of a scope of no more, all are
	maxLoose    = 20_000 // rows that are read beside the index of words
	maxTried    = 3      // spellings of a query
)

// Searched is what one search of a memory found.
type Searched[R any] struct {
	Results R
	Ranking Ranking
	Texts   []string // by which its hits are found
}

// Respelled searches for a question and, where words of it are in no row of its scope, for its other spellings: each
// with these words replaced by words that differ in one letter, and that rows have. It returns what the first of them
// finds that finds its words, with its text; otherwise what the question itself finds, and no text.
func Respelled[R any](ctx context.Context, d db.DB, s *Search, q Question,
	search func(text string, guessed bool) (Searched[R], error)) (results R, spelling string, err error) {
	first, err := search(q.Text, false)
	if err != nil || q.AsWritten {
		return first.Results, "", err
	}
	spellings, err := s.spellings(ctx, d, q, first.Ranking.match, first.Ranking.unseen(first.Texts))
	for _, other := range spellings {
		again, err := search(other.text, true)
		if err != nil {
			return again.Results, "", err
		}
		if written := wordsOf(again.Texts, other.terms); other.in(written) {
			return again.Results, other.as(written), nil
		}
	}
	return first.Results, "", err
}

// SpellingIn returns the spelling of a query in which texts have the words of it that none of them has as they are
// written; empty if they have all of its words, or none that is spelled like one.
func SpellingIn(query string, texts []string) string {
	terms := make([][]int64, len(texts))
	for i, text := range texts {
		for _, t := range lexicon.TermsOf(text) {
			terms[i] = append(terms[i], int64(t.ID))
		}
	}
	r := Ranking{ByWords: true, text: query, scope: lexicon.NewIDF(terms, len(texts))}
	for _, other := range spellingsOf(query, r.unseen(texts), map[int32]int{}) {
		if written := wordsOf(texts, other.terms); other.in(written) {
			return other.as(written)
		}
	}
	return ""
}

// spelled is another spelling of a question's text.
type spelled struct {
	text  string
	words []string // by which it replaces others
	terms []string // of words
}

// in reports whether each of the new terms has a word.
func (s spelled) in(written map[string]string) bool {
	return !slices.ContainsFunc(s.terms, func(t string) bool { return written[t] == "" })
}

// as returns the text with the words of its terms as rows have them: another word than was tried may have the term.
func (s spelled) as(written map[string]string) string {
	text := s.text
	for i, word := range s.words {
		text = replaceWord(text, word, written[s.terms[i]])
	}
	return text
}

// wordsOf returns, by those of the terms that texts have, a word of each in lower case. A row may have another word of
// the same TermID, and lack the term.
func wordsOf(texts, terms []string) map[string]string {
	words := map[string]string{}
	for _, text := range texts {
		lexicon.EachTerm(text, func(t *lexicon.Term) {
			if words[t.Text] == "" && slices.Contains(terms, t.Text) {
				words[t.Text] = strings.ToLower(t.Word)
			}
		})
	}
	return words
}

// termsIn returns the terms of texts.
func termsIn(texts []string) map[string]bool {
	known := map[string]bool{}
	for _, text := range texts {
		lexicon.EachTerm(text, func(t *lexicon.Term) { known[t.Text] = true })
	}
	return known
}

// spellings returns the spellings of a question with words that no row of its scope may have, the likeliest first.
// match is the answer of the index of words; nil if the index did not answer.
func (s *Search) spellings(ctx context.Context, d db.DB, q Question, match *wordindex.Match, unseen []misspelt) (
	all []spelled, err error) {
	if len(unseen) == 0 {
		return nil, nil
	}
	counts, err := s.countTerms(ctx, d, q, match, unseen)
	if err != nil || counts == nil {
		return nil, err
	}
	return spellingsOf(q.Text, unseen, counts), nil
}

// spellingsOf returns the spellings of a text in which words have others that rows have, the likeliest first.
func spellingsOf(text string, unseen []misspelt, counts map[int32]int) (all []spelled) {
	for n := range maxTried {
		other := spelled{text: text}
		for _, m := range unseen {
			if known := m.known(counts); n < len(known) && counts[m.id] == 0 {
				other.text = replaceWord(other.text, m.word, known[n].word)
				other.words, other.terms = append(other.words, known[n].word), append(other.terms, known[n].text)
			}
		}
		if len(other.terms) > 0 {
			all = append(all, other)
		}
	}
	return all
}

// misspelt is a word of a query that may be misspelt, with its other spellings.
type misspelt struct {
	word  string // as the query has it
	id    int32
	edits []edit
	scope *lexicon.IDF
}

// edit is another spelling of a word. A lower cost is likelier.
type edit struct {
	word string
	text string // of its term
	id   int32
	cost int
}

// unseen returns the words of the query that neither the sample of the scope, nor the index of its words, nor the texts
// have.
func (r Ranking) unseen(texts []string) (all []misspelt) {
	if !r.ByWords || r.scope == nil {
		return nil
	}
	var known map[string]bool
	noLetter := func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' }
	for word := range strings.FieldsFuncSeq(r.text, noLetter) {
		lower := strings.ToLower(word)
		if len(lower) < minSpelled || len(lower) > maxSpelled || lexicon.IsStopword(lower) || !isLetters(lower) {
			continue
		}
		t := lexicon.TermOf(lower, lower)
		same := func(m misspelt) bool { return m.id == t.ID }
		if r.scope.Having(t.ID) > 0 || r.match.Has(t.ID) || slices.ContainsFunc(all, same) {
			continue
		}
		if known == nil {
			known = termsIn(texts)
		}
		if known[t.Text] {
			continue
		}
		all = append(all, misspelt{word: word, id: t.ID, edits: editsOf(lower, t.ID), scope: r.scope})
		if len(all) == maxMisspelt {
			break
		}
	}
	return all
}

func isLetters(word string) bool {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return false
		}
	}
	return true
}

// editsOf returns the words that differ from a word in one letter, or in the order of two, each of another term than
// its own.
func editsOf(word string, own int32) (all []edit) {
	seen := map[int32]bool{own: true}
	add := func(text string, cost int) {
		if t := lexicon.TermOf(text, text); !lexicon.IsStopword(text) && !seen[t.ID] {
			seen[t.ID] = true
			all = append(all, edit{text, t.Text, t.ID, cost})
		}
	}
	for i := range len(word) - 1 {
		add(word[:i]+word[i+1:i+2]+word[i:i+1]+word[i+2:], 0)
	}
	for i := range len(word) {
		add(word[:i]+word[i+1:], 1)
		for c := 'a'; c <= 'z'; c++ {
			add(word[:i]+string(c)+word[i:], 1)
			if len(word) >= minReplaced {
				add(word[:i]+string(c)+word[i+1:], 2)
			}
		}
	}
	for c := 'a'; c <= 'z'; c++ {
		add(word+string(c), 1)
	}
	return all
}

// known returns the spellings that rows have, the likeliest first.
func (m misspelt) known(counts map[int32]int) (known []edit) {
	rows := func(e edit) int { return counts[e.id] + maxSharing*m.scope.Having(e.id) }
	for _, e := range m.edits {
		if rows(e) > 0 {
			known = append(known, e)
		}
	}
	slices.SortStableFunc(known, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(rows(b), rows(a)), strings.Compare(a.word, b.word))
	})
	return known
}

// countTerms returns how many rows have the words and those of their spellings that the sample lacks, by their TermID;
// nil if there are too many to count. match is the answer of the index of words; nil if the index did not answer.
func (s *Search) countTerms(ctx context.Context, d db.DB, q Question, match *wordindex.Match, words []misspelt) (
	map[int32]int, error) {
	scope := words[0].scope
	if scope.IsComplete() {
		return map[int32]int{}, nil // the sample lacks no word
	}
	var ids []int32
	for _, m := range words {
		ids = append(ids, m.id)
		for _, e := range m.edits {
			ids = append(ids, e.id)
		}
	}
	few := scope.Rows() <= maxSharing || s.leavesFew(q) && q.Most <= maxSharing
	terms, err := s.indexTerms(ctx, q, ids)
	if err != nil || len(terms) == 0 || len(terms) > maxLookedUp {
		return nil, err
	}
	counts, indexed := map[int32]int{}, false
	if match != nil && !few {
		known, ok, err := s.Words.Count(ctx, d, match, ids)
		if err != nil {
			return nil, err
		}
		if ok {
			counts, indexed = known, true
		}
	}
	read, most := 0, maxSharing
	for _, f := range q.Filters {
		rows := sharing{settings: ByArrayIndex, args: with(f.Args, "terms", terms), sql: fmt.Sprintf(`
			SELECT r.terms FROM %s LIMIT %d`, s.sharing(f), maxSharing)}
		switch {
		case few: // an index of terms finds rows of other scopes, too
			rows.settings, rows.sql = "", `SELECT r.terms FROM `+s.Table+` r WHERE `+f.Rows
		case indexed:
			match.Args(rows.args, nil)
			most = maxLoose
			rows.settings, rows.sql = wordindex.ByIndexes, fmt.Sprintf(`
			SELECT t.terms FROM %s CROSS JOIN LATERAL (
				SELECT t.terms FROM %s t WHERE t.org = @org AND t.key = r.key OFFSET 0
			) t LIMIT %d`, s.Words.Matched(f.Rows), s.Table, maxLoose)
		}
		n, err := rows.count(ctx, d, counts)
		if read += n; err != nil || read >= most && !few {
			return nil, err
		}
	}
	return counts, nil
}

// sharing selects rows that share one of the terms @terms.
type sharing struct {
	settings, sql string // settings may be empty
	args          pgx.StrictNamedArgs
}

// count adds to counts how many of the rows have each of the terms, and returns how many rows it read.
func (s sharing) count(ctx context.Context, d db.DB, counts map[int32]int) (read int, err error) {
	type count struct {
		ID   int64 `db:"id"`
		Rows int   `db:"rows"`
		All  int   `db:"all_rows"`
	}
	var list []count
	var batch pgx.Batch
	if s.settings != "" {
		batch.Queue(s.settings)
	}
	batch.Queue(fmt.Sprintf(`
		WITH sharing AS MATERIALIZED (%s
		)
		SELECT t & %d AS id, count(*) AS rows, (SELECT count(*) FROM sharing) AS all_rows
		FROM (SELECT unnest(terms) AS t FROM sharing) AS of_rows
		WHERE (t IN (SELECT unnest(@terms::bigint[]))) IS TRUE -- hashed; = ANY and a join may compare each with each
		GROUP BY t`, s.sql, lexicon.Lexicon-1), s.args).Query(
		func(rows pgx.Rows) error {
			list, err = pgx.CollectRows(rows, pgx.RowToStructByName[count])
			return err
		})
	if err := d.SendBatch(ctx, &batch).Close(); err != nil {
		return 0, db.Error(err)
	}
	for _, c := range list {
		counts[int32(c.ID)] += c.Rows //nolint:gosec // 24 bits
		read = c.All
	}
	return read, nil
}

// replaceWord replaces a word of a text, wherever it stands alone.
func replaceWord(text, word, by string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, word)
		if i < 0 {
			break
		}
		end := i + len(word)
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[end:])
		alone := !lexicon.ContinuesWord(before) && !lexicon.ContinuesWord(after)
		b.WriteString(text[:i])
		if alone {
			b.WriteString(by)
		} else {
			b.WriteString(word)
		}
		text = text[end:]
	}
	return b.String() + text
}
