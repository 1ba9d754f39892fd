package rank

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
)

// LexVersion is the version of the terms and weights that lexicon.Document computes. Rows have it as lex_version. A
// migration that makes a new version the columns' default lets Reweigh replace the older rows. Until then, searches
// still find most of them: most words have the same term in both versions.
const LexVersion = 5

// ReweighRows is how many rows are weighed again in one transaction.
const ReweighRows = 200

// Outdated is a row with words that were weighed with an older LexVersion.
type Outdated struct {
	Key   int64  `db:"key"`
	Owner int64  `db:"owner"` // of its terms; 0 if these are plain
	Text  string `db:"text"`  // text by which the row is found

	Language *string `db:"language"` // its code, if its writer chose it
}

// Reweigh computes the word weights of Table's rows again if an older version of Loci computed them, in every
// organization, and returns their number. texts selects the columns of Outdated from rows r of the organization @org,
// and ends with a condition; Reweigh adds that the rows are outdated. Searches work meanwhile: they find a row by the
// words that have the same terms in both versions.
func (s *Search) Reweigh(ctx context.Context, d db.DB, texts string) (rows int, err error) {
	texts += fmt.Sprintf(` AND r.lex_version < %d ORDER BY r.key LIMIT %d FOR NO KEY UPDATE OF r SKIP LOCKED`,
		LexVersion, ReweighRows)
	return EachOrgBatch(ctx, d, func(ctx context.Context, tx pgx.Tx, org db.Org) (int, error) {
		list, err := db.All[Outdated](ctx, tx, texts, pgx.StrictNamedArgs{"org": org})
		if err != nil || len(list) == 0 {
			return 0, err
		}
		return len(list), s.StoreWords(ctx, tx, org, list)
	})
}

// StoreWords stores the words of rows with the current weights.
func (s *Search) StoreWords(ctx context.Context, tx pgx.Tx, org db.Org, list []Outdated) error {
	keys := make([]int64, len(list))
	var batch pgx.Batch
	for i, row := range list {
		keys[i] = row.Key
		given := ""
		if row.Language != nil {
			given = *row.Language
		}
		lex := lexicon.DocumentIn(row.Text, given)
		batch.Queue(`UPDATE `+s.Table+` SET lex = $3, terms = $4, lex_version = $5 WHERE org = $1 AND key = $2`,
			org, row.Key, lex.Vector, s.terms(row.Owner, lex), LexVersion)
	}
	if s.Words != nil {
		if err := s.Words.Note(ctx, tx, org, keys...); err != nil {
			return err
		}
	}
	return db.Error(tx.SendBatch(ctx, &batch).Close())
}

// terms returns a row's terms in the form of Table's column.
func (s *Search) terms(owner int64, lex lexicon.Lex) any {
	if s.PlainTerms {
		return lex.Terms
	}
	return lexicon.Owned(owner, lex.Terms)
}

// EachOrgBatch calls work for each organization, in a new transaction each time, until it does nothing more. It returns
// how many rows work reported.
func EachOrgBatch(ctx context.Context, d db.DB,
	work func(ctx context.Context, tx pgx.Tx, org db.Org) (rows int, err error)) (rows int, err error) {
	orgs, err := db.Orgs(ctx, d)
	if err != nil {
		return 0, err
	}
	for _, org := range orgs {
		for worked := ReweighRows; worked > 0; rows += worked {
			err := db.Tx(ctx, d, func(tx pgx.Tx) (err error) {
				worked, err = work(ctx, tx, org)
				return err
			})
			if err != nil {
				return rows, fmt.Errorf("weigh words anew: %w", err)
			}
		}
	}
	return rows, nil
}
