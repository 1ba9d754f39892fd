package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

type skillArgs struct {
	Name text `json:"name"`
}

// nearestSkills is how many names an error suggests.
const nearestSkills = 5

// loadSkill returns the text of a skill; without a name, the list of all.
func (m Memories) loadSkill(ctx context.Context, c Caller, a skillArgs) (Result, error) {
	all, err := m.Files.Skills(ctx, c.Org, c.folders())
	if err != nil {
		return Result{}, err
	}
	usable := slices.DeleteFunc(slices.Clone(all), func(sk files.Skill) bool { return sk.Error != nil })
	name := strings.TrimPrefix(strings.TrimSpace(string(a.Name)), "/")
	switch {
	case len(usable) == 0:
		return Result{}, db.Invalid("You have no skills. An operator gives you some by attaching a folder of skills.")
	case name == "":
		return Result{Text: mostHits(c.maxChars(), len(usable), func(s shownHits) string { return skillList(usable, s) })},
			nil
	}
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, sk := range usable {
			if same(sk.Name, name) {
				t, err := m.Files.SkillText(ctx, c.Org, sk)
				return Result{Text: agent.SkillShown(t, c.maxChars(), "", c.has())}, err
			}
		}
	}
	if i := slices.IndexFunc(all, func(sk files.Skill) bool { return sk.Error != nil && sk.Name == name }); i >= 0 {
		return Result{}, db.Invalid("The skill %s (%s) cannot be loaded: %s.", line(name), fileName(all[i].FileName),
			*all[i].Error)
	}
	return Result{}, db.Invalid("There is no skill '%s'. The nearest: %s. To see all, call: load_skill()", echo(name),
		joined(nearest(name, usable)))
}

// nearest returns the names of the skills that are nearest to a name: those that share a part of it, those whose
// descriptions have it, then those spelled like it.
func nearest(name string, all []files.Skill) (names []string) {
	name = strings.ToLower(name)
	far := func(sk files.Skill) int {
		switch other := strings.ToLower(sk.Name); {
		case strings.Contains(other, name) || strings.Contains(name, other):
			return -2
		case strings.Contains(strings.ToLower(sk.Description), name):
			return -1
		default:
			return distance(name, other)
		}
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b files.Skill) int { return cmp.Compare(far(a), far(b)) })
	for _, sk := range all[:min(len(all), nearestSkills)] {
		names = append(names, sk.Name)
	}
	return names
}

// skillList lists the first skills, with the beginnings of their descriptions.
func skillList(all []files.Skill, shown shownHits) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n", count(len(all), "skill"))
	for _, sk := range all[:shown.n] {
		b.WriteString("- " + sk.Name)
		if about := excerpt(sk.Description, "", shown.chars); about != "" && shown.chars > 0 {
			b.WriteString(": " + line(about))
		}
		b.WriteByte('\n')
	}
	if rest := len(all) - shown.n; rest > 0 {
		fmt.Fprintf(&b, "and %d more, which have no room here. To find one, give a word of its name or description as "+
			"name.\n", rest)
	}
	return b.String()
}
