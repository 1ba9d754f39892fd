// Starts the built program on a private Postgres in a directory of its own.
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class Loci {
  private log = '';
  private constructor(
    private readonly process: ChildProcess,
    private readonly directory: string,
    public url = '',
  ) {}

  /** Starts a server with the given settings and returns when it serves. */
  static async start(settings: Record<string, string>): Promise<Loci> {
    const directory = mkdtempSync(join(tmpdir(), 'loci-client-'));
    chmodSync(directory, 0o711); // as root, Postgres runs as another user
    const program = process.env['LOCI_PROGRAM'] ?? join(process.cwd(), '../../bin/loci');
    const child = spawn(program, ['serve'], {
      env: { ...process.env, LOCI_HOME: join(directory, 'home'), LOCI_ADDR: '127.0.0.1:0', ...settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const loci = new Loci(child, directory);
    child.stderr?.on('data', (piece: Buffer) => (loci.log += piece.toString()));
    loci.url = await new Promise<string>((resolve, reject) => {
      let out = '';
      child.stdout?.on('data', (piece: Buffer) => {
        out += piece.toString();
        const serves = /serves (http:\S+)/.exec(out);
        if (serves?.[1]) resolve(serves[1]);
      });
      child.on('error', reject);
      child.on('exit', (code) => reject(new Error(`${program} ended with ${code}:\n${loci.log}`)));
    });
    return loci;
  }

  /** The lines of the log that report faults. Postgres reports the queries of requests that were given up. */
  faults(): string[] {
    const lines = this.log.split('\n').filter((line) => /level=ERROR|^panic/.test(line));
    return lines.filter((line) => !line.includes('postgres: connection to client lost'));
  }

  /** Stops the server and removes its data. The exit status is returned. */
  async stop(): Promise<number | null> {
    const ended = new Promise<number | null>((resolve) => this.process.on('exit', resolve));
    this.process.kill('SIGTERM');
    const status = this.process.exitCode ?? (await ended);
    rmSync(this.directory, { recursive: true, force: true });
    return status;
  }
}
