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
	minSpelled  = 5      // least letters of a word that may be misspelt
	minReplaced = 6      // least letters of a word that may have a wrong letter
	maxSpelled  = 20     // most letters of a word
	maxMisspelt = 3      // words of a query
	maxLookedUp = 5_000  // terms of all owners
	maxSharing  = 2_000  // rows that are read; a smaller scope is read whole
	maxLoose    = 20_000 // rows that are read besides the index of words
	maxTried    = 3      // spellings of a query
)

// Searched is the result of one search of a memory.
type Searched[R any] struct {
	Results R
	Ranking Ranking
	Texts   []string // texts by which the hits are found
}

// Respelled searches for a question. If no row of the scope has some of its words, Respelled also searches for other
// spellings: each replaces these words by words that rows have and that differ in one letter. It returns the result and
// the text of the first spelling that finds its new words. If there is none, it returns the question's own result and
// "".
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

// SpellingIn returns another spelling of a query for texts. It replaces the words that no text has by words that the
// texts have. It returns "" if the texts have all words, or none with a similar spelling.
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
	words []string // the new words
	terms []string // terms of words
}

// in reports whether each of the new terms has a word.
func (s spelled) in(written map[string]string) bool {
	return !slices.ContainsFunc(s.terms, func(t string) bool { return written[t] == "" })
}

// as returns the text with the new words as rows have them: a row may have the term with a word other than the one that
// was tried.
func (s spelled) as(written map[string]string) string {
	text := s.text
	for i, word := range s.words {
		text = replaceWord(text, word, written[s.terms[i]])
	}
	return text
}

// wordsOf returns term → a lower-case word of it, for those of the terms that texts have. A row may have another word
// with the same TermID, and lack the term.
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

// spellings returns other spellings of a question in which the words that no row of the scope may have are replaced,
// the likeliest first. match is the answer of the index of words, or nil if it did not answer.
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

// spellingsOf returns other spellings of a text in which words are replaced by words that rows have, the likeliest
// first.
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
	edits []spellingChange
	scope *lexicon.IDF
}

// spellingChange is another spelling of a word. The lower its cost, the likelier it is.
type spellingChange struct {
	word string
	text string // of its term
	id   int32
	cost int
}

// unseen returns the words of the query that are not in the sample of the scope, in the index of its words, or in
// texts.
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
		isKnown := func(t *lexicon.Term) bool { return r.scope.Having(t.ID) > 0 || r.match.Has(t.ID) }
		stems := r.Query.TermsOf(word)
		if slices.ContainsFunc(stems, isKnown) || isKnown(t) || slices.ContainsFunc(all, same) {
			continue
		}
		if known == nil {
			known = termsIn(texts)
		}
		if known[t.Text] || slices.ContainsFunc(stems, func(t *lexicon.Term) bool { return known[t.Text] }) {
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

// editsOf returns the words that differ from a word in one letter, or in the order of two letters, and have different
// terms from it and from each other. wordID is the word's term id.
func editsOf(word string, wordID int32) (all []spellingChange) {
	seen := map[int32]bool{wordID: true}
	add := func(text string, cost int) {
		if t := lexicon.TermOf(text, text); !lexicon.IsStopword(text) && !seen[t.ID] {
			seen[t.ID] = true
			all = append(all, spellingChange{text, t.Text, t.ID, cost})
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
func (m misspelt) known(counts map[int32]int) (known []spellingChange) {
	rows := func(e spellingChange) int { return counts[e.id] + maxSharing*m.scope.Having(e.id) }
	for _, e := range m.edits {
		if rows(e) > 0 {
			known = append(known, e)
		}
	}
	slices.SortStableFunc(known, func(a, b spellingChange) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(rows(b), rows(a)), strings.Compare(a.word, b.word))
	})
	return known
}

// countTerms returns TermID → number of rows, for the words and for those of their spellings that the sample lacks. It
// returns nil if there are too many to count. match is the answer of the index of words, or nil if it did not answer.
func (s *Search) countTerms(ctx context.Context, d db.DB, q Question, match *wordindex.Match, words []misspelt) (
	map[int32]int, error) {
	scope := words[0].scope
	if scope.IsComplete() {
		return map[int32]int{}, nil // the sample has all words
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
		case few: // an index on terms finds rows of other scopes, too
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

// sharing selects the rows that have one of the terms @terms.
type sharing struct {
	settings, sql string // settings may be empty
	args          pgx.StrictNamedArgs
}

// count counts how many rows have each of the terms, adds the numbers to counts, and returns how many rows it read.
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

// replaceWord replaces a word of a text wherever it is a whole word.
func replaceWord(text, word, replacement string) string {
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
			b.WriteString(replacement)
		} else {
			b.WriteString(word)
		}
		text = text[end:]
	}
	return b.String() + text
}
