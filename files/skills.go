package files

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/loci-memory/loci/db"
)

// Skill is a skill of an agent: a file SKILL.md, at any depth of an attached folder of skills. Its front matter has the
// name and the description. One with an Error is no skill that a model can load.
type Skill struct {
	Name        string  `json:"name" doc:"By which it is loaded; with an error: its directory."`
	Description string  `json:"description" doc:"Says when to load it; a model reads it in each prompt."`
	FolderID    string  `db:"folder_id" json:"folder_id"`
	FileID      string  `db:"file_id" json:"file_id"`
	FileName    string  `db:"file_name" json:"file_name" doc:"folder/name, as the file tools name it."`
	Error       *string `json:"error" doc:"Why no model is offered it; null if one is."`
	Warning     *string `json:"warning" doc:"What is wrong with it, though it can be loaded."`

	skillFile
}

// skillFile is the place of a skill's text.
type skillFile struct {
	Key        int64   `db:"key" json:"-"`
	FolderKey  int64   `db:"folder_key" json:"-"`
	Folder     string  `db:"folder" json:"-"` // its name
	Path       string  `db:"path" json:"-"`   // of the file in its folder
	Generation int     `db:"generation" json:"-"`
	Failure    *string `db:"failure" json:"-"`
	Head       string  `db:"head" json:"-"`
}

// Bounds of skills.
const (
	maxSkills           = 500     // of an agent
	maxDescriptionChars = 1024    // of a skill
	frontMatterChars    = 16_384  // within which the front matter must end
	maxSkillBytes       = 1 << 20 // of a skill's text, of which whole segments are read
	besideListed        = 50      // files beside a skill that are named
)

// Skills lists the skills of an agent within a reach, by folder and path. One that cannot be loaded has an Error that
// says why. Of more than 500 the others are left out, and an entry without a file says so.
func (s *Store) Skills(ctx context.Context, org db.Org, r Reach) ([]Skill, error) {
	sees, args := r.sees(org, r.AgentID, frontMatterChars, maxSkills+1)
	all, err := db.All[Skill](ctx, s.db, `
		SELECT '' AS name, '' AS description, NULL AS error, NULL AS warning, d.id AS folder_id, f.id AS file_id,
		       d.name || '/' || f.name AS file_name, f.key, f.folder_key, d.name AS folder, f.name AS path, f.generation,
		       f.error AS failure,
		       coalesce((SELECT left(g.text, $3) FROM file_segments g
		                 WHERE g.org = $1 AND g.file_key = f.key AND g.generation = f.generation
		                 ORDER BY g.ordinal LIMIT 1), '') AS head
		FROM agent_folders a
		JOIN folders d ON d.org = a.org AND d.key = a.folder_key
		JOIN files f ON f.org = d.org AND f.folder_key = d.key
		WHERE a.org = $1 AND d.org = $1 AND f.org = $1 AND a.agent_id = $2 AND d.skills AND d.deleted_at IS NULL
		  AND f.replaces IS NULL AND (lower(f.name) = 'skill.md' OR lower(right(f.name, 9)) = '/skill.md') AND `+sees+`
		ORDER BY d.name COLLATE "C", d.key, f.name COLLATE "C", f.key
		LIMIT $4`, args...)
	if err != nil {
		return nil, err
	}
	taken := map[string]string{}
	for i := range all[:min(len(all), maxSkills)] {
		sk := &all[i]
		sk.read()
		if other, twice := taken[sk.Name]; twice && sk.Error == nil {
			sk.fail("its name %s is that of %s too, which is offered; give one of them another name", sk.Name, other)
		}
		if sk.Error == nil {
			taken[sk.Name] = sk.FileName
		}
	}
	if len(all) > maxSkills {
		all[maxSkills] = Skill{Name: "…"}
		all[maxSkills].fail("the agent has more than %d skills; the others are not offered", maxSkills)
	}
	return all, nil
}

// read reads the front matter.
func (sk *Skill) read() {
	sk.Name = cmp.Or(strings.TrimPrefix(path.Dir(sk.Path), "."), sk.Folder)
	if sk.Generation == 0 {
		if sk.Failure != nil {
			sk.fail("the file could not be read: %s", *sk.Failure)
		} else {
			sk.fail("the file is still being read")
		}
		return
	}
	matter, _, ok := cutFrontMatter(sk.Head)
	if !ok {
		sk.fail("it has no front matter: its first line must be ---, then come name: and description:, then a line --- "+
			"within the first %d characters", frontMatterChars)
		return
	}
	var of struct {
		Name        yaml.Node `yaml:"name"`
		Description yaml.Node `yaml:"description"`
	}
	if err := yaml.Unmarshal([]byte(matter), &of); err != nil {
		sk.fail("its front matter is not YAML (%s); a value with a colon must be within quotes",
			strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	name, description := strings.TrimSpace(of.Name.Value), strings.Join(strings.Fields(of.Description.Value), " ")
	switch {
	case !isText(of.Name) || name == "":
		sk.fail("its front matter has no name that is a text")
	case !skillName.MatchString(name):
		sk.fail("its name %s is not allowed: it may have up to 64 letters, digits, spaces, '-', '_', '.' and ':', and "+
			"begins with a letter or a digit", quoted(name))
	case !isText(of.Description) || description == "":
		sk.Name = name
		sk.fail("its front matter has no description that is a text, so that no model knows when to load it")
	default:
		sk.Name, sk.Description = name, description
		if n := utf8.RuneCountInString(description); n > maxDescriptionChars {
			sk.Description = clip(description, maxDescriptionChars)
			sk.Warning = new(fmt.Sprintf("its description has %d characters; only the first %d are read", n,
				maxDescriptionChars))
		}
	}
}

// skillName matches names that a prompt can show as they are.
var skillName = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{M}\p{N} _.:-]{0,63}$`)

func isText(n yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag != "!!null" }

func (sk *Skill) fail(format string, args ...any) { sk.Error = new(fmt.Sprintf(format, args...)) }

// cutFrontMatter divides a text into its front matter, between two lines ---, and what follows. ok is false if it
// begins with no front matter.
func cutFrontMatter(text string) (matter, rest string, ok bool) {
	text = strings.TrimPrefix(text, "\ufeff")
	first, text, found := strings.Cut(text, "\n")
	if !found || strings.TrimRight(first, " \t\r") != "---" {
		return "", "", false
	}
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		next := min(at+len(line)+1, len(text))
		if end := strings.TrimRight(line, " \t\r"); end == "---" || end == "..." {
			return text[:at], text[next:], true
		}
		at = next
	}
	return "", "", false
}

// SkillText is what a skill says.
type SkillText struct {
	Skill
	Text   string   // without the front matter
	Line   int      // at which Text begins in the file, from 1
	Cut    bool     // the file is longer
	Beside []string // files in its directory and below, as folder/name, by name; at most besideListed
	More   int      // files beside it that Beside leaves out
}

// SkillText reads a skill that Skills returned, without an Error.
func (s *Store) SkillText(ctx context.Context, org db.Org, sk Skill) (t SkillText, err error) {
	type segments struct {
		Text string `db:"text"`
		All  bool   `db:"whole"`
	}
	read, err := db.One[segments](ctx, s.db, `
		SELECT coalesce(string_agg(g.text, '' ORDER BY g.ordinal) FILTER (WHERE g.before < $4), '') AS text,
		       coalesce(bool_and(g.before < $4), true) AS whole
		FROM (
			SELECT text, ordinal, sum(octet_length(text)) OVER (ORDER BY ordinal) - octet_length(text) AS before
			FROM file_segments WHERE org = $1 AND file_key = $2 AND generation = $3
		) g`, org, sk.Key, sk.Generation, maxSkillBytes)
	if err != nil {
		return t, err
	}
	t = SkillText{Skill: sk, Text: read.Text, Line: 1, Cut: !read.All}
	if _, rest, ok := cutFrontMatter(read.Text); ok {
		t.Text = rest
	}
	body := strings.TrimLeft(t.Text, "\r\n")
	t.Line += strings.Count(read.Text[:len(read.Text)-len(body)], "\n")
	t.Text = strings.TrimRight(body, " \t\r\n")
	type beside struct {
		Name  string `db:"name"`
		Total int    `db:"total"`
	}
	files, err := db.All[beside](ctx, s.db, `
		SELECT name, count(*) OVER ()::integer AS total FROM files
		WHERE org = $1 AND folder_key = $2 AND replaces IS NULL AND key <> $3 AND starts_with(name, $4)
		ORDER BY name COLLATE "C", key
		LIMIT $5`, org, sk.FolderKey, sk.Key, strings.TrimSuffix(sk.Path, path.Base(sk.Path)), besideListed)
	for _, f := range files {
		t.Beside, t.More = append(t.Beside, sk.Folder+"/"+f.Name), f.Total-len(files)
	}
	return t, err
}
