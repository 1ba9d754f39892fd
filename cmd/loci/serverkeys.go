package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

// register makes LOCI_API_KEY a key. It returns an error if other machines can reach the server and there is no key.
func (c *serving) register(ctx context.Context, keys *apikey.Store, log *slog.Logger, loopback bool) error {
	if c.APIKey != "" {
		revoked, err := keys.Register(ctx, string(c.APIKey))
		if errors.Is(err, db.ErrInvalid) {
			return settingError{fmt.Errorf("LOCI_API_KEY: %w", err)}
		} else if err != nil {
			return err
		}
		if revoked {
			log.Warn("LOCI_API_KEY is a key that was revoked, and stays revoked: requests with it are refused. Set another " +
				"one, or leave it out")
		}
	}
	if c.Reopen {
		if err := reopen(ctx, keys, log); err != nil {
			return err
		}
	}
	return c.checkReachable(ctx, keys, loopback)
}

// checkReachable returns an error if other machines can reach the server and there is no key.
func (c *serving) checkReachable(ctx context.Context, keys *apikey.Store, loopback bool) error {
	if loopback {
		return nil
	}
	hasKeys, err := keys.Any(ctx)
	if err == nil && !hasKeys {
		err = settingError{fmt.Errorf("LOCI_ADDR is '%s', which other machines can reach, and there is no API key: "+
			"set LOCI_API_KEY, run 'loci keys create', or listen on 127.0.0.1", c.Addr)}
	}
	return err
}

// reopen lets this machine use the server without a key again, or logs why that is impossible.
func reopen(ctx context.Context, keys *apikey.Store, log *slog.Logger) error {
	if err := keys.Reopen(ctx); err != nil {
		return err
	}
	hasKeys, err := keys.Any(ctx)
	if err == nil && hasKeys {
		log.Warn("LOCI_REOPEN opens nothing: there are API keys, and one that has expired counts until it is revoked. " +
			"'loci keys list' shows them, 'loci keys revoke' revokes one")
	}
	return err
}

// warnIfClosed logs that nobody can use the server if all keys are revoked or expired.
func warnIfClosed(ctx context.Context, keys *apikey.Store, log *slog.Logger) error {
	hasValidKey, err := keys.AnyValid(ctx)
	if err != nil || hasValidKey {
		return err
	}
	if _, err = keys.OpenOrg(ctx); errors.Is(err, db.ErrNotFound) {
		log.Warn("every API key is revoked or has expired, and every request is refused: run 'loci keys create', set " +
			"LOCI_API_KEY, or, once all are revoked, start with --reopen (LOCI_REOPEN) to answer this machine without one again")
		return nil
	}
	return err
}
