-- A worker that is alone keeps a second call at hand, so every claim looks for others.

create index workers_live on batchmill.workers (id) where state = 'live';
