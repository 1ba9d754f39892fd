package prose

import (
	"fmt"
	"strings"
)

// skillHead begins what the tool load_skill returns: a skill's name and file.
const skillHead = "The skill %s, from %s:"

// SkillHead returns the line that begins the text of a loaded skill.
func SkillHead(name, file string) string { return fmt.Sprintf(skillHead, name, file) }

// LoadedSkill returns the name of the skill with a text that begins with a SkillHead; empty if it does not.
func LoadedSkill(text string) string {
	head, _, _ := strings.Cut(text, "\n")
	before, after, _ := strings.Cut(skillHead, "%s")
	name, ok := strings.CutPrefix(head, before)
	between, _, _ := strings.Cut(after, "%s")
	name, _, found := strings.Cut(name, between)
	if !ok || !found {
		return ""
	}
	return name
}

// ToLoadSkill returns the call that loads a skill.
func ToLoadSkill(name string) string { return fmt.Sprintf("load_skill(name=%q)", name) }
