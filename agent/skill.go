package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// listedChars is how many characters of a description the list of skills shows (Claude Code: 250).
const listedChars = 250

// Skills lists the skills of an agent, and the names in skills.preload that none of them has, as skills with an error.
func (s *Store) Skills(ctx context.Context, org db.Org, a Agent) ([]files.Skill, error) {
	all, err := s.Files.Skills(ctx, org, files.Of(a.ID))
	for _, name := range a.Settings.Skills.preload() {
		if _, ok := skillNamed(all, name); !ok && err == nil {
			all = append(all, files.Skill{Name: name,
				Error: new("skills.preload names it, and no attached folder of skills has a skill of this name")})
		}
	}
	return all, err
}

// skillNamed returns the skill with a name that can be loaded.
func skillNamed(all []files.Skill, name string) (files.Skill, bool) {
	i := slices.IndexFunc(all, func(sk files.Skill) bool { return sk.Error == nil && sk.Name == name })
	if i < 0 {
		return files.Skill{}, false
	}
	return all[i], true
}

// CheckSkills returns an ErrInvalid for the first name that no skill of an agent has.
func (s *Store) CheckSkills(ctx context.Context, org db.Org, a Agent, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if err := (SkillSettings{Preload: names}).check(); err != nil {
		return err
	}
	all, err := s.Files.Skills(ctx, org, a.foldersFor(ctx))
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, ok := skillNamed(all, name); !ok {
			return db.Invalid("skills: the agent has no skill %q that can be loaded; GET /v1/agents/%s/skills lists them",
				db.Short(name), a.ID)
		}
	}
	return nil
}

// SkillFolders returns the ids of the folders with skills of these names.
func (s *Store) SkillFolders(ctx context.Context, org db.Org, a Agent, names []string) (ids []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	all, err := s.Files.Skills(ctx, org, a.foldersFor(ctx))
	for _, name := range names {
		if sk, ok := skillNamed(all, name); ok {
			ids = append(ids, sk.FolderID)
		}
	}
	return ids, err
}

// compileSkills writes the list of skills, and the messages of those that are preloaded.
func (s *Store) compileSkills(ctx context.Context, org db.Org, a Agent, r files.Reach, m promptMeans) (list string,
	preloaded []recall.Message, err error) {
	if !a.HasSkills {
		return "", nil, nil
	}
	all, err := s.Files.Skills(ctx, org, r)
	if err != nil {
		return "", nil, err
	}
	if m.count == nil {
		m.window, m.count = a.AssumedWindow(), func(text string) int { return s.CountTokens(a, text) }
	}
	if hasTool(m.tools, LoadSkill) {
		list = renderSkills(all, a.Settings.Skills.listTokens(m.window), m.count)
	}
	left := a.Settings.Skills.preloadTokens(m.window)
	for i, name := range a.Settings.Skills.preload() {
		sk, ok := skillNamed(all, name)
		if !ok || slices.Contains(a.Settings.Skills.Preload[:i], name) {
			continue
		}
		t, err := s.Files.SkillText(ctx, org, sk)
		if err != nil {
			return "", nil, err
		}
		more := toolset(m.tools).Hint(LoadSkill, "To read more of it, call: "+prose.ToLoadSkill(name))
		text := fittingSkill(t, left, m.count, more, toolset(m.tools))
		left = max(left-tokens.PerMessage-m.count(text), 0)
		preloaded = append(preloaded, recall.Message{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: text,
			NoteAt: [2]int{0, len(text)}}}})
	}
	return list, preloaded, nil
}

// skillsIntroduction tells a model what the list of its skills is for.
const skillsIntroduction = "Skills are instructions for a kind of work. If one of these fits a task, call load_skill " +
	"with its name before you begin."

// renderSkills writes the section of the prompt that lists skills, within a number of tokens. Names that have no room
// for their description stand alone, and those that have no room are counted. It is empty if there is no skill.
func renderSkills(all []files.Skill, most int, count func(string) int) string {
	var bare, full []string
	for _, sk := range all {
		if sk.Error != nil {
			continue
		}
		about := sk.Description
		if shown := beginning(about, listedChars); shown != about {
			about = strings.TrimRight(shown, " ") + "…"
		}
		bare = append(bare, "- "+sk.Name+"\n")
		full = append(full, "- "+sk.Name+": "+frame.Neutralize(about)+"\n")
	}
	if len(bare) == 0 {
		return ""
	}
	const begin, end = "<available_skills>\n" + skillsIntroduction + "\n", "</available_skills>"
	left := most - count(begin+end)
	names := 0 // that have room
	for names < len(bare) && left-count(bare[names]) >= 0 {
		left -= count(bare[names])
		names++
	}
	lines := bare[:names]
	for i := range lines {
		if more := count(full[i]) - count(bare[i]); more <= left {
			left -= more
			lines[i] = full[i]
		}
	}
	text := begin + strings.Join(lines, "")
	if rest := len(bare) - names; rest > 0 {
		text += fmt.Sprintf("and %d more; load_skill without a name lists all\n", rest)
	}
	return text + end
}

// SkillShown returns a loaded skill as a model reads it: at most chars characters of its text, and the files beside it.
// If it is cut, a sentence says so, followed by more, or by the call that reads on if more is empty.
func SkillShown(t files.SkillText, chars int, more string, has recall.Toolset) string {
	text := prose.SkillHead(t.Name, t.FileName) + "\n\n"
	shown := beginning(t.Text, chars)
	if i := strings.LastIndexByte(shown, '\n'); shown != t.Text && i >= len(shown)/2 {
		shown = shown[:i]
	}
	text += shown
	if shown != t.Text || t.Cut {
		if more == "" {
			more = has.Hint("open_files", fmt.Sprintf("To read on, call: open_files(file_requests=[{\"file_name\": %q, "+
				"\"line\": %d}])", t.FileName, t.Line+strings.Count(shown, "\n")+1))
		}
		total := fmt.Sprint(utf8.RuneCountInString(t.Text))
		if t.Cut {
			total = "more than " + total
		}
		text += strings.TrimRight(fmt.Sprintf("\n\nThese are the first %d of %s characters. %s",
			utf8.RuneCountInString(shown), total, more), " ")
	}
	if len(t.Beside) == 0 {
		return text
	}
	text += "\n\nFiles beside it"
	var ways []string
	for _, name := range []string{"open_files", "grep_files"} {
		if way := has.Hint(name, name); way != "" {
			ways = append(ways, way)
		}
	}
	if len(ways) > 0 {
		text += ", which " + strings.Join(ways, " and ") + " can read"
	}
	text += ":\n- " + strings.Join(t.Beside, "\n- ")
	if t.More > 0 {
		text += fmt.Sprintf("\nand %d more", t.More)
	}
	return text
}

// fittingSkill returns the message that preloads a skill, with as much of its text as fits a number of tokens.
func fittingSkill(t files.SkillText, most int, count func(string) int, more string, has recall.Toolset) string {
	message := func(chars int) string {
		return fmt.Sprintf("%s The skill %s is loaded. Follow it where it fits.\n<skill>\n%s\n</skill>", frame.System, t.Name,
			frame.Neutralize(SkillShown(t, chars, more, has)))
	}
	total := utf8.RuneCountInString(t.Text)
	if whole := message(total); count(whole)+tokens.PerMessage <= most {
		return whole
	}
	first := sort.Search(total, func(n int) bool { return count(message(n+1))+tokens.PerMessage > most })
	return message(first)
}

// loadedSkills maps the name of each skill that a view shows as loaded → the text that load_skill returns for it now.
// It has no entry for skills that the agent no longer has, and is nil if none was loaded.
func (s *Store) loadedSkills(ctx context.Context, org db.Org, p Prompt) (map[string]string, error) {
	var names []string
	for _, r := range p.Messages {
		for _, part := range r.Content {
			if part.Type != recall.ToolReturn || part.Failed() {
				continue
			}
			if name := prose.LoadedSkill(part.Text); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	all, err := s.Files.Skills(ctx, org, p.Agent.Folders(p.Conversation))
	if err != nil {
		return nil, err
	}
	now := map[string]string{}
	for _, name := range names {
		sk, ok := skillNamed(all, name)
		if !ok {
			continue
		}
		t, err := s.Files.SkillText(ctx, org, sk)
		if err != nil {
			return nil, err
		}
		text := SkillShown(t, p.Agent.ResultChars(), "", p.Agent.HasTool)
		if now[name], err = s.Recall.CleanedResult(ctx, org, text); err != nil && !errors.Is(err, db.ErrInvalid) {
			return nil, err
		}
	}
	return now, nil
}
