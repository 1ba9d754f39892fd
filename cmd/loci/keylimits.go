package main

import "github.com/loci-memory/loci/tenant/apikey"

// keyLimits are the limits of API keys that have none of their own.
type keyLimits struct {
	PerMinute int `env:"LOCI_KEY_REQUESTS_PER_MINUTE" default:"0" help:"Requests a minute of a key; 0: no limit."`
	AtOnce    int `env:"LOCI_KEY_REQUESTS_AT_ONCE" default:"0" help:"Requests of a key under way at once; 0: no limit."`
}

func (k keyLimits) limits() apikey.Limits {
	return apikey.Limits{PerMinute: k.PerMinute, AtOnce: k.AtOnce}
}

func (k keyLimits) check() error {
	err := k.limits().Check([2]string{"LOCI_KEY_REQUESTS_PER_MINUTE", "LOCI_KEY_REQUESTS_AT_ONCE"})
	if err != nil {
		return settingError{err}
	}
	return nil
}
