package letta

import (
	"math/rand/v2"
	"strings"
)

// randomName returns two words, for an agent that is created without a name.
func randomName() string { return pick(adjectives) + " " + pick(nouns) }

func pick(words []string) string { return words[rand.IntN(len(words))] } //nolint:gosec // a name, not a secret

var adjectives = strings.Fields(`amber brave bright calm candid clever coral crisp early gentle golden hazel indigo keen
	kind lively lucid mellow nimble olive patient quiet rapid silver steady sunny swift tidy vivid warm wise young`)

var nouns = strings.Fields(`badger beacon birch brook cedar comet condor crane delta falcon fern finch fjord gecko
	harbor heron island juniper lagoon lantern lynx maple meadow otter pine raven reef river sparrow summit willow wren`)
