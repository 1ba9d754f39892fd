package files

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/loci-memory/loci/db"
)

// attached is a file in a folder that is attached to an agent.
type attached struct {
	storedText         // generation 0 before the file's first text
	ID         string  `db:"id"`
	FullName   string  `db:"full_name"`
	Name       string  `db:"name"`
	Error      *string `db:"error"`
}

func (a attached) notReady() error {
	if a.Error != nil {
		return db.Invalid("File %s has no text: %s", a.FullName, *a.Error)
	}
	return db.Invalid("File %s is still being processed: try again in a moment", a.FullName)
}

const attachedRows = `
	SELECT f.key, f.id, d.name || '/' || f.name AS full_name, f.name, f.generation, f.lines, f.error, f.pages, f.media_type
	FROM agent_folders a
	JOIN folders d ON d.org = a.org AND d.key = a.folder_key
	JOIN files f ON f.folder_key = a.folder_key AND f.replaces IS NULL`

// attachedFile returns an attached file by its id. ErrNotFound if the file or the agent does not exist.
func (set openSet) attachedFile(ctx context.Context, fileID string) (attached, error) {
	sees, args := set.sees(set.org, set.AgentID, fileID)
	f, err := db.One[attached](ctx, set.db, attachedRows+`
		WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2 AND f.id = $3 AND `+sees, args...)
	if errors.Is(err, db.ErrNotFound) {
		if err := set.checkAgent(ctx); err != nil {
			return attached{}, err
		}
		return attached{}, db.NotFound("file %s is not attached to agent %s", fileID, set.AgentID)
	}
	return f, err
}

// resolve finds attached files by the names that a model gives: folder/name, a name that only one attached file has, or
// an id. ErrInvalid if no file has the name, or several have it. The error lists names of attached files.
func (set openSet) resolve(ctx context.Context, names []string) ([]attached, error) {
	var folders, leaves []string
	for _, name := range names {
		name = norm.NFC.String(name)
		folders, leaves = append(folders, ""), append(leaves, name)
		for i, r := range name {
			if r == '/' {
				folders, leaves = append(folders, name[:i]), append(leaves, name[i+1:])
			}
		}
	}
	sees, args := set.sees(set.org, set.AgentID, folders, leaves, names)
	rows, err := db.All[attached](ctx, set.db, `
		SELECT DISTINCT t.* FROM (`+attachedRows+`
			JOIN unnest($3::text[], $4::text[]) AS n (folder, name) ON f.name = n.name
			     AND (n.folder = '' OR n.folder = normalize(d.name))
			WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2 AND `+sees+`
			UNION ALL `+attachedRows+`
			WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2 AND f.id = ANY ($5) AND `+sees+`) t
		ORDER BY full_name, key`, args...)
	if err != nil {
		return nil, err
	}
	found := make([]attached, len(names))
	for i, name := range names {
		matching := named(rows, name)
		switch len(matching) {
		case 1:
			found[i] = matching[0]
		case 0:
			if plain := strings.ReplaceAll(name, `\"`, `"`); plain != name { // a name as the prompt shows it
				return set.resolve(ctx, slices.Concat(names[:i], []string{plain}, names[i+1:]))
			}
			return nil, set.notAttached(ctx, name)
		default:
			texts := mapped(matching, func(a attached) string { return a.FullName + " [" + a.ID + "]" })
			return nil, db.Invalid("%s fits several attached files (%s): name one of them", name, strings.Join(texts, ", "))
		}
	}
	return found, nil
}

// named returns the files that a name means: those with this full name or id, otherwise those with this own name.
func named(rows []attached, name string) []attached {
	var full, leaf []attached
	name = norm.NFC.String(name)
	for _, r := range rows {
		switch name {
		case norm.NFC.String(r.FullName), r.ID:
			full = append(full, r)
		case r.Name: // names are stored in this form
			leaf = append(leaf, r)
		}
	}
	if len(full) > 0 {
		return full
	}
	return leaf
}

// An error lists at most namesShown attached files, in at most namesBytes.
const (
	namesShown = 50
	namesBytes = 600
)

// notAttached returns an ErrInvalid that lists the attached files.
func (set openSet) notAttached(ctx context.Context, name string) error {
	list, err := set.List(ctx, set.org, set.Reach, ListQuery{Limit: namesShown})
	if err != nil {
		return err
	}
	var names []string
	size := 0
	for _, f := range list.Files {
		if size += len(f.FileName); size > namesBytes && len(names) > 0 {
			break
		}
		names = append(names, "'"+f.FileName+"'")
	}
	text := "[" + strings.Join(names, ", ") + "]"
	if more := list.Total - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return db.Invalid(
		"%s not attached - did you get the filename correct? Currently you have the following files attached: %s", name, text)
}
